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

// Protocol is the API that a server implements.
type Protocol string

// Protocols.
const (
	Gemini Protocol = "gemini"
	OpenAI Protocol = "openai"
)

// Default models of the servers.
const (
	GeminiModel = "gemini-3.5-flash-lite"
	OpenAIModel = "local-model"
)

// APIKey is the default key of the servers.
const APIKey = "fake-key-5Q2x8Zr7Lk1Nv4Tb"

// Config configures a server. The zero value is a Gemini server that replies
// with ValidReply.
type Config struct {
	Protocol Protocol
	Script   Script // for generate calls; nil = Text(ValidReply())
	// Models is the script for calls that list models. If it is nil or returns
	// a reply, the response lists Model.
	Models Script
	Model  string
	Key    string
	NoKey  bool // accept any key, like a local server
}

// Server is a fake server. Its methods are safe for concurrent use. Key and Model are the values
// for the client; a test may change them to send wrong ones.
type Server struct {
	Protocol Protocol
	URL      string // value for llm.base_url: the root for Gemini, with /v1 for OpenAI
	Key      string
	Model    string

	cfg      Config
	protocol protocolServer

	mu       sync.Mutex
	requests []*Request
	calls    int
}

// protocolServer implements one API.
type protocolServer interface {
	// parseRoute returns the operation of a request and the model in its path.
	parseRoute(r *http.Request) (op Operation, model string)
	readKey(r *http.Request) string
	// refuseKey returns the error for a missing or wrong key.
	refuseKey(got string) *errorSpec
	// parseBody parses the body of a Generate request into r.
	parseBody(r *Request) *errorSpec
	unknownModel(model string) *errorSpec
	noSuchPath(r *http.Request) Behaviour

	encodeReply(r *Request, b *replySpec) any
	encodeFailure(r *Request, f *errorSpec) any
	// defaultStatus is the status of an error without one.
	defaultStatus(f *errorSpec) int
	encodeModel(name string) any
	encodeModels(name string) any
}

// Start starts a server that is closed at the end of the test.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Script == nil {
		cfg.Script = Always(Text(ValidReply()))
	}
	if cfg.Models == nil {
		cfg.Models = Always(Behaviour{})
	}
	cfg.Protocol, cfg.Key = cmp.Or(cfg.Protocol, Gemini), cmp.Or(cfg.Key, APIKey)
	base := ""
	var p protocolServer
	switch cfg.Protocol {
	case Gemini:
		p, cfg.Model = geminiProtocol{}, cmp.Or(cfg.Model, GeminiModel)
	case OpenAI:
		p, cfg.Model, base = openaiProtocol{}, cmp.Or(cfg.Model, OpenAIModel), openaiBase
	default:
		t.Fatalf("no protocol %q", cfg.Protocol)
	}
	s := &Server{Protocol: cfg.Protocol, Key: cfg.Key, Model: cfg.Model, cfg: cfg, protocol: p}
	srv := httptest.NewServer(http.HandlerFunc(s.serveHTTP))
	s.URL = srv.URL + base
	t.Cleanup(func() {
		srv.CloseClientConnections() // ends pending responses
		srv.Close()
	})
	return s
}

// Requests returns the requests so far, in order of arrival.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Calls returns the number of generate calls that the script answered.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *Server) serveHTTP(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client disconnected
	}
	r := &Request{Method: hr.Method, URL: hr.URL.RequestURI(), Header: hr.Header.Clone(), Body: body, Call: -1}
	r.Operation, r.Model = s.protocol.parseRoute(hr)
	r.Key = s.protocol.readKey(hr)
	b := s.validate(hr, r)
	s.recordRequest(r, b)
	if b == nil {
		answer := s.cfg.Script
		if r.Operation != Generate {
			answer = s.cfg.Models
		}
		said := answer(r)
		b = &said
	}
	s.respond(w, hr, r, b)
}

// recordRequest records the request, and numbers it if it is valid.
func (s *Server) recordRequest(r *Request, refused *Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if refused == nil && r.Operation == Generate {
		r.Call = s.calls
		s.calls++
	}
}

// validate returns the server's response to an invalid request, or nil.
func (s *Server) validate(hr *http.Request, r *Request) *Behaviour {
	if r.Operation == Other {
		b := s.protocol.noSuchPath(hr)
		r.Rejected = "no such path"
		return &b
	}
	f := s.checkRequest(r)
	if f == nil {
		return nil
	}
	r.Rejected = cmp.Or(f.message, f.reason)
	return &Behaviour{failure: f}
}

func (s *Server) checkRequest(r *Request) *errorSpec {
	if r.Key != s.cfg.Key && !s.cfg.NoKey {
		return s.protocol.refuseKey(r.Key)
	}
	if r.Operation == Generate {
		if f := s.protocol.parseBody(r); f != nil {
			return f
		}
	}
	if r.Operation != ListModels && r.Model != s.cfg.Model {
		return s.protocol.unknownModel(r.Model)
	}
	return nil
}
