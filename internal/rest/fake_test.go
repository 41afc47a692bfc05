package rest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

const testVersion = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// fakeBackend implements all dependencies of the API. Its zero value completes every request and
// has two agents.
type fakeBackend struct {
	handle   func(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error)
	classify func(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error)
	states   map[string]AgentState
	ready    Readiness
	outcomes outcomeRecorder
	limit    httpserver.RateLimiter
	forget   bool // do not keep the requests
	later    fakeLater
	leases   fakeLeases
	lease    int   // in the grant of the token
	fleet    Fleet // nil = agents cannot register
	tools    *fakeTools

	mu  sync.Mutex
	got []*contract.Request
	ids atomic.Int64
}

func (f *fakeBackend) deps() Deps {
	if f.fleet == nil {
		f.fleet = emptyFleet{}
	}
	if f.tools == nil {
		f.tools = &fakeTools{}
	}
	return Deps{
		Fleet:            f.fleet,
		Tools:            f.tools,
		MCPServers:       f.tools,
		MCPRegistrations: f.tools,
		MCPApprovals:     f.tools,
		MCPBindings:      f.tools,
		Runs:             fakeRuns{},
		RunLister:        fakeRuns{},
		RunControl:       fakeRuns{},
		RunEraser:        fakeRuns{},
		Router:           f,
		Requests:         f,
		Decisions:        f,
		AuditLog:         f,
		Feedback:         f,
		Tasks:            f,
		Leases:           &f.leases,
		Tickets:          f,
		TaskTokens:       f.taskToken,
		Registry:         testSnapshot,
		AgentState:       func(id string) AgentState { return f.states[id] },
		Readiness:        f.readiness,
		JWKS:             func() []byte { return []byte(`{"keys":[{"kty":"OKP","kid":"k1"}]}`) },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = io.WriteString(w, "up 1\n")
		}),
		Meter: &f.outcomes,
	}
}

func (f *fakeBackend) newID() string {
	return fmt.Sprintf("01980c1a-7c00-7a3e-9d41-%012x", f.ids.Add(1))
}

func (f *fakeBackend) readiness() Readiness {
	if f.ready.Status == "" {
		return Readiness{Status: ReadinessReady}
	}
	return f.ready
}

func (f *fakeBackend) note(req *contract.Request) {
	if f.forget {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, req)
}

// last returns the latest request, or nil.
func (f *fakeBackend) last() *contract.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.got) == 0 {
		return nil
	}
	return f.got[len(f.got)-1]
}

func (f *fakeBackend) HandleJSON(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, []byte, error) {
	resp, err := f.Handle(ctx, req, caller)
	return resp, nil, err
}

func (f *fakeBackend) Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	f.note(req)
	if f.handle != nil {
		return f.handle(ctx, req, caller)
	}
	return completedResponse(req), nil
}

func (f *fakeBackend) Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error) {
	f.note(req)
	if f.classify != nil {
		return f.classify(ctx, req, caller)
	}
	clf := testClassification()
	return &clf, nil
}

func testClassification() contract.Classification {
	return contract.Classification{
		Intent: "code_review", Domains: []string{"python"}, Confidence: 0.9,
		Source: contract.SourceLexical, LatencyMS: 0.04,
	}
}

func testDecision() *contract.Decision {
	return &contract.Decision{
		DecisionID:     "01980c1a-7c0a-7b11-8c22-90aa11bb22cc",
		Classification: testClassification(),
		Candidates: []contract.Candidate{{
			AgentID: "quality_agent", Score: 0.8, Parts: contract.ScoreParts{Intent: 0.5, Domains: 0.3},
			MatchedDomains: []string{"python"}, Eligible: true, Role: contract.RoleChosen,
		}},
		CandidatesTotal: 1,
		Chosen:          []string{"quality_agent"},
		RegistryVersion: testVersion,
		TimingsMS:       map[string]float64{"classify": 0.04, "match": 0.01},
	}
}

func completedResponse(req *contract.Request) *contract.Response {
	return &contract.Response{
		RequestID: req.RequestID, TraceID: cmp.Or(req.TraceID, goodTrace), Status: contract.StatusCompleted, Decision: testDecision(),
		Tasks: []contract.TaskReport{{
			TaskID: "01980c1a-7c0b-7d10-a1b2-c3d4e5f60718", AgentID: "quality_agent",
			SubtaskTitle: "Review", Status: contract.TaskSuccess, Attempts: 1, LatencyMS: 12,
		}},
		Data: contract.ResponseData{
			Mode: contract.DataDispatch, Answer: "All well.",
			Results: []contract.AgentResult{{AgentID: "quality_agent", Status: contract.TaskSuccess}},
		},
	}
}

func unsupportedResponse(req *contract.Request) *contract.Response {
	policy := "B"
	d := testDecision()
	d.Chosen, d.FallbackUsed = nil, &policy
	d.Candidates[0].Eligible, d.Candidates[0].Role = false, contract.RoleCandidate
	return &contract.Response{
		RequestID: req.RequestID, TraceID: cmp.Or(req.TraceID, goodTrace), Status: contract.StatusUnsupported, Decision: d,
		Data: contract.ResponseData{
			Mode: contract.DataUnsupported, DryRun: req.Options.DryRun,
			Unsupported: &contract.Unsupported{
				Reason: "no_match", Detail: "no agent declares this",
				Nearest:        []contract.NearestMiss{{AgentID: "quality_agent", Score: 0.3, MissingScore: 0.35}},
				NearestReading: &contract.NearestReading{AgentID: "quality_agent", Intent: "code_review", Confidence: 0.41},
			},
		},
	}
}

func testSnapshot() *capabilities.Snapshot {
	s, err := capabilities.NewSnapshot(&capabilities.Definition{
		Agents: []*contract.RegistryEntry{
			{
				ID:       "billing_agent",
				Match:    contract.Match{Intent: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"}},
				Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://127.0.0.1:9102/tasks"},
			},
			{
				ID:          "quality_agent",
				Match:       contract.Match{Intent: []string{"code_review"}, Domains: []string{"python", contract.AnyDomain}},
				MaxInFlight: 2,
			},
		},
		Routing:  capabilities.DefaultRouting(),
		Fallback: capabilities.DefaultFallback(),
		Grants:   map[string]contract.Grant{"billing_agent": {Intents: []string{"cost_analysis"}, Domains: []string{"azure"}}},
	})
	if err != nil {
		panic(err)
	}
	s.Catalogue.Version = testVersion
	s.Fleet.Warnings = []string{"fallback policy C is not available yet: B answers instead"}
	return s
}

func newServer(t testing.TB, cfg httpserver.Config, core *fakeBackend) *httpserver.Server {
	t.Helper()
	api, err := New(Config{ClassifyLimit: core.limit}, core.deps())
	if err != nil {
		t.Fatal(err)
	}
	cfg.NewID = core.newID
	s, err := httpserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Mount(api); err != nil {
		t.Fatal(err)
	}
	return s
}

// testServer is a Server on a loopback port, with its own client.
type testServer struct {
	*httpserver.Server
	addr   string
	client *http.Client
	stop   func() error // ends Serve and returns its error; later calls have no effect
}

func startServer(t testing.TB, cfg httpserver.Config, core *fakeBackend) *testServer {
	t.Helper()
	s := newServer(t, cfg, core)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	ts := &testServer{Server: s, addr: ln.Addr().String(), client: &http.Client{Transport: transport}}
	ts.stop = sync.OnceValue(func() error {
		cancel()
		transport.CloseIdleConnections()
		return testkit.Receive(t, served)
	})
	t.Cleanup(func() {
		if err := ts.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ts
}

// reply is a response with its body.
type reply struct {
	*http.Response
	body []byte
}

// do sends a request and compares it and its response with the OpenAPI document. headers are name,
// value, name, value…; "Host" sets the host.
func (ts *testServer) do(t testing.TB, method, path, body string, headers ...string) reply {
	t.Helper()
	got := ts.send(t, method, path, strings.NewReader(body), headers...)
	checkConformance(t, method, path, body, got)
	return got
}

// send sends a request without checking the response.
func (ts *testServer) send(t testing.TB, method, path string, body io.Reader, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+ts.addr+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := ts.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Request = req
	return reply{Response: resp, body: data}
}

func (ts *testServer) get(t testing.TB, path string, headers ...string) reply {
	t.Helper()
	return ts.do(t, http.MethodGet, path, "", headers...)
}

func (ts *testServer) post(t testing.TB, path, body string, headers ...string) reply {
	t.Helper()
	return ts.do(t, http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

const prompt = `{"content":{"prompt":"Please do a code review of this python module"}}`

// outcomeRecorder is a Meter.
type outcomeRecorder struct {
	mu       sync.Mutex
	outcomes []string
}

func (r *outcomeRecorder) RecordRequest(outcome string, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, outcome)
}

func (r *outcomeRecorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcomes
}
