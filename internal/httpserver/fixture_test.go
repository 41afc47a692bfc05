package httpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

const maxTestBody = 1 << 20

// fakeAPI is a small API with one route of each class. Its zero value completes all requests.
type fakeAPI struct {
	work   func(c *Context) error       // handler of POST /work
	stream func(c *Context) EventStream // handler of POST /stream and GET /events
	limit  RateLimiter                  // limit of POST /work

	handled           atomic.Int64 // requests that reached a handler
	inFlight          atomic.Int64
	delayed, rejected atomic.Int64 // by the throttle
	mu                sync.Mutex
	outcomes          []string // of failed POST /work requests
}

// AddInFlight implements Meter.
func (f *fakeAPI) AddInFlight(delta int) { f.inFlight.Add(int64(delta)) }

// RecordThrottled implements Meter.
func (f *fakeAPI) RecordThrottled(rejected bool) {
	if rejected {
		f.rejected.Add(1)
	} else {
		f.delayed.Add(1)
	}
}

func (f *fakeAPI) observe(outcome string, _ time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcomes = append(f.outcomes, outcome)
}

func (f *fakeAPI) failures() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcomes
}

// testError is the error format of fakeAPI.
type testError struct {
	Error   contract.Code `json:"error"`
	Message string        `json:"message"`
	ID      string        `json:"id"`
}

func encodeTestError(requestID string, e *contract.Error) (EncodedError, bool) {
	statuses := map[contract.Code]int{
		contract.CodeInternal: 500, contract.CodeOverloaded: 503, contract.CodeRateLimited: 429,
		contract.CodeForbidden: 403, contract.CodeUnauthenticated: 401, contract.CodeNotFound: 404,
		contract.CodeMethodNotAllowed: 405, contract.CodePayloadTooLarge: 413,
		contract.CodeUnsupportedMediaType: 415, contract.CodeInvalidRequest: 400,
	}
	status, ok := statuses[e.Code]
	return EncodedError{Status: status, ContentType: MediaTypeJSON, Body: testError{e.Code, e.Message, requestID}}, ok
}

func (f *fakeAPI) api() API {
	ok := func(c *Context) error {
		f.handled.Add(1)
		c.SetOutcome("done")
		return c.WriteJSON(http.StatusOK, MediaTypeJSON, map[string]bool{"draining": c.Draining()})
	}
	work := func(c *Context) error {
		if f.work == nil {
			return ok(c)
		}
		f.handled.Add(1)
		return f.work(c)
	}
	body := BodySpec{MaxBytes: maxTestBody, MediaTypes: []string{MediaTypeJSON}}
	stream := func(endOnShutdown bool) func(c *Context) error {
		return func(c *Context) error {
			s := f.stream(c)
			s.EndOnShutdown = endOnShutdown
			return c.StreamEvents(s)
		}
	}
	return API{
		Prefix:      "/",
		EncodeError: encodeTestError,
		Routes: []Route{
			{Method: "POST", Path: "/work", Scope: "work", Body: body, RateLimit: f.limit, ObserveError: f.observe, Handle: work},
			{Method: "GET", Path: "/work", Scope: "work", Handle: ok},
			{Method: "POST", Path: "/heavy", Scope: "work", Class: ClassHeavy, Handle: ok},
			{Method: "POST", Path: "/finish", Scope: "work", Class: ClassCompletion, Handle: ok},
			{Method: "POST", Path: "/stream", Scope: "work", Handle: stream(false)},
			{Method: "GET", Path: "/events", Scope: "work", Class: ClassStream, Handle: stream(true)},
			{Method: "GET", Path: "/health", Scope: Public, Class: ClassUnlimited, Handle: ok},
		},
	}
}

func newServer(t testing.TB, cfg Config, f *fakeAPI) *Server {
	t.Helper()
	var ids atomic.Int64
	cfg.NewID = func() string { return fmt.Sprintf("id-%d", ids.Add(1)) }
	cfg.Meter = f
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Mount(f.api()); err != nil {
		t.Fatal(err)
	}
	return s
}

// testServer is a Server on a loopback port, with a client.
type testServer struct {
	*Server
	addr   string
	client *http.Client
	stop   func() error // shuts down and returns Serve's error; later calls have no effect
}

func startServer(t testing.TB, cfg Config, f *fakeAPI) *testServer {
	t.Helper()
	s := newServer(t, cfg, f)
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
		select {
		case err := <-served:
			return err
		case <-time.After(testkit.Patience):
			return errors.New("Serve did not return")
		}
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
	body string
}

func (r reply) code(t testing.TB) contract.Code {
	t.Helper()
	var e testError
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		t.Fatalf("got body %q: %v", r.body, err)
	}
	if e.ID != r.Header.Get("X-Request-Id") {
		t.Errorf("got id %q in the error, want that of the header, %q", e.ID, r.Header.Get("X-Request-Id"))
	}
	return e.Error
}

// open sends a request and returns its response before the whole body has arrived. headers are
// name, value, name, value…
func (ts *testServer) open(ctx context.Context, method, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+ts.addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", MediaTypeJSON)
	req.Header.Set("Authorization", "Bearer t")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return ts.client.Do(req)
}

func (ts *testServer) send(t testing.TB, method, path, body string, headers ...string) reply {
	t.Helper()
	resp, err := ts.open(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp, string(data)}
}

// sendInBackground sends POST /work and sends its status to the channel, or 0 if the connection
// broke.
func (ts *testServer) sendInBackground() <-chan int {
	status := make(chan int, 1)
	go func() {
		resp, err := ts.open(context.Background(), "POST", "/work", "{}")
		if err != nil {
			status <- 0
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		status <- resp.StatusCode
	}()
	return status
}

// localRequest returns a request as received by the server, without a connection.
func localRequest(method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", MediaTypeJSON)
	r.Header.Set("Authorization", "Bearer t")
	return r
}

func serve(s *Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// countingAuth accepts all tokens and counts the verifications.
type countingAuth struct {
	verified atomic.Int64
	caller   contract.Caller
	err      error
}

func (a *countingAuth) Verify(context.Context, string) (*contract.Caller, error) {
	a.verified.Add(1)
	return &a.caller, a.err
}

func authFor(subject string) *countingAuth {
	return &countingAuth{caller: contract.Caller{Subject: subject, Scopes: []string{"work"}}}
}

// blockedAPI is an API whose POST /work requests run until they are released or cancelled.
type blockedAPI struct {
	fakeAPI
	entered       chan struct{} // receives a value per request
	release       chan struct{} // closed to release them
	ended         chan error    // receives the cause if a context ended
	ignoreContext bool
}

func newBlockedAPI() *blockedAPI {
	b := &blockedAPI{entered: make(chan struct{}, 16), release: make(chan struct{}), ended: make(chan error, 16)}
	b.work = func(c *Context) error {
		ctx := c.Request.Context()
		b.entered <- struct{}{}
		done := ctx.Done()
		if b.ignoreContext {
			done = nil
		}
		select {
		case <-b.release:
			return c.WriteJSON(http.StatusOK, MediaTypeJSON, "done")
		case <-done:
			b.ended <- context.Cause(ctx)
			return ctx.Err()
		}
	}
	return b
}
