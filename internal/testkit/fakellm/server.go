package fakellm

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Protocol is the API a server speaks.
type Protocol string

// The wires.
const (
	Gemini Protocol = "gemini"
	OpenAI Protocol = "openai"
)

// Models the servers have unless a Config says otherwise.
const (
	GeminiModel = "gemini-3.5-flash-lite"
	OpenAIModel = "local-model"
)

// APIKey is the key the servers want unless a Config says otherwise.
const APIKey = "fake-key-5Q2x8Zr7Lk1Nv4Tb"

// Config describes a server; its zero value is a Gemini that replies with Valid.
type Config struct {
	Wire   Protocol
	Script Script // of calls for a reply; nil = Text(Valid())
	// Models is the script of calls for the models there are; nil, or a
	// Behaviour that is a reply, tells of Model.
	Models Script
	Model  string
	Key    string
	NoKey  bool // any key will do, or none, as with a server of one's own
}

// Server is a fake server. Its methods are safe for concurrent use. Key and Model
// are what a client is to be given; a test that changes them gives it wrong ones.
type Server struct {
	Wire  Protocol
	URL   string // as llm.base_url has it: of Gemini the root, of OpenAI with /v1
	Key   string
	Model string

	cfg  Config
	wire wire
	done chan struct{} // the test is over: whatever is held or silent ends

	mu       sync.Mutex
	requests []*Request
	calls    int
}

// wire is how one API is spoken.
type wire interface {
	// route tells what a request is for, and which model its path names.
	route(r *http.Request) (op Operation, model string)
	key(r *http.Request) string
	// refuseKey is the answer to a missing or a wrong key.
	refuseKey(got string) *failure
	// read fills in what the body of a Generate says.
	read(r *Request) *failure
	unknownModel(model string) *failure
	noSuchPath(r *http.Request) Behaviour

	reply(r *Request, b *reply) any
	failure(r *Request, f *failure) any
	// status is that of a failure which names only a reason.
	status(f *failure) int
	model(name string) any
	models(name string) any
}

// Start starts a server that ends with the test.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Script == nil {
		cfg.Script = Always(Text(ValidReply()))
	}
	if cfg.Models == nil {
		cfg.Models = Always(Behaviour{})
	}
	cfg.Wire, cfg.Key = cmp.Or(cfg.Wire, Gemini), cmp.Or(cfg.Key, APIKey)
	s := &Server{done: make(chan struct{})}
	base := ""
	switch cfg.Wire {
	case Gemini:
		s.wire, cfg.Model = geminiWire{}, cmp.Or(cfg.Model, GeminiModel)
	case OpenAI:
		s.wire, cfg.Model, base = openaiWire{}, cmp.Or(cfg.Model, OpenAIModel), openaiBase
	default:
		t.Fatalf("no wire %q", cfg.Wire)
	}
	s.Wire, s.Key, s.Model, s.cfg = cfg.Wire, cfg.Key, cfg.Model, cfg
	srv := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = srv.URL + base
	t.Cleanup(func() {
		close(s.done)
		srv.CloseClientConnections()
		srv.Close()
	})
	return s
}

// Requests returns what came so far, in order of arrival.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Calls returns how often the script was asked for a reply.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client left
	}
	r := &Request{Method: hr.Method, URL: hr.URL.RequestURI(), Header: hr.Header.Clone(), Body: body, Call: -1}
	r.Operation, r.Model = s.wire.route(hr)
	r.Key = s.wire.key(hr)
	b := s.refuse(hr, r)
	s.note(r, b)
	if b == nil {
		answer := s.cfg.Script
		if r.Operation != Generate {
			answer = s.cfg.Models
		}
		said := answer(r)
		b = &said
	}
	s.do(w, hr, r, b)
}

// note records the request, and numbers it when the script is to answer it.
func (s *Server) note(r *Request, refused *Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if refused == nil && r.Operation == Generate {
		r.Call = s.calls
		s.calls++
	}
}

// refuse is what the server says to a request it takes no notice of, nil for one
// that is as it should be.
func (s *Server) refuse(hr *http.Request, r *Request) *Behaviour {
	if r.Operation == Other {
		b := s.wire.noSuchPath(hr)
		r.Refused = "no such path"
		return &b
	}
	f := s.check(r)
	if f == nil {
		return nil
	}
	r.Refused = cmp.Or(f.message, f.reason)
	return &Behaviour{failure: f}
}

func (s *Server) check(r *Request) *failure {
	if r.Key != s.cfg.Key && !s.cfg.NoKey {
		return s.wire.refuseKey(r.Key)
	}
	if r.Operation == Generate {
		if f := s.wire.read(r); f != nil {
			return f
		}
	}
	if r.Operation != ListModels && r.Model != s.cfg.Model {
		return s.wire.unknownModel(r.Model)
	}
	return nil
}
