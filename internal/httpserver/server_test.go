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

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func TestNew_RequiresNewID(t *testing.T) {
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "NewID") {
		t.Errorf("got error %v, want one that names NewID", err)
	}
}

func TestMount_RejectsInvalidAPIs(t *testing.T) {
	handle := func(*Context) error { return nil }
	valid := func() API {
		return API{Prefix: "/x/", EncodeError: encodeTestError, Routes: []Route{{Method: "GET", Path: "/x/a", Handle: handle}}}
	}
	for name, change := range map[string]func(*API){
		"no EncodeError": func(a *API) { a.EncodeError = nil },
		"undefined code": func(a *API) {
			a.EncodeError = func(string, *contract.Error) (EncodedError, bool) { return EncodedError{}, false }
		},
		"another prefix":  func(a *API) { a.Routes[0].Path = "/y" },
		"no handler":      func(a *API) { a.Routes[0].Handle = nil },
		"duplicate route": func(a *API) { a.Routes = append(a.Routes, a.Routes[0]) },
		"mounted route":   func(a *API) { a.Prefix, a.Routes[0].Path, a.Routes[0].Method = "/", "/work", "POST" },
	} {
		s := newServer(t, Config{}, &fakeAPI{})
		api := valid()
		change(&api)
		if err := s.Mount(api); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	s := newServer(t, Config{}, &fakeAPI{})
	if err := s.Mount(valid()); err != nil {
		t.Errorf("valid API: %v", err)
	}
}

func TestServe_WithoutAPIFails(t *testing.T) {
	s, err := New(Config{NewID: func() string { return "id" }})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), ln); err == nil {
		t.Error("got no error, want one")
	}
}

// TestServer_EncodesGuardErrorsInFormatOfAPI mounts a second API with its own error format
// next to the first one.
func TestServer_EncodesGuardErrorsInFormatOfAPI(t *testing.T) {
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	encode := func(_ string, e *contract.Error) (EncodedError, bool) {
		if e.Code == contract.CodeConflict {
			return EncodedError{}, false
		}
		body := map[string]any{"jsonrpc": "2.0", "error": rpcError{-32000, string(e.Code)}}
		status := http.StatusBadRequest
		switch e.Code {
		case contract.CodeUnauthenticated:
			status = http.StatusUnauthorized
		case contract.CodeForbidden:
			status = http.StatusForbidden
		}
		return EncodedError{Status: status, ContentType: "application/rpc+json", Body: body}, true
	}
	auth, limit := authFor("s"), &countdown{left: map[string]int{}}
	first := newBlockedAPI()
	s := newServer(t, Config{Auth: auth, MaxInFlight: 2}, &first.fakeAPI)
	fail := errors.New("secret")
	err := s.Mount(API{
		Prefix:      "/rpc/",
		EncodeError: encode,
		NotFound:    "no such method",
		Routes: []Route{
			{
				Method: "POST", Path: "/rpc/call", Scope: "work", RateLimit: limit,
				Body:   BodySpec{MaxBytes: 10, MediaTypes: []string{MediaTypeJSON}},
				Handle: func(c *Context) error { return c.WriteJSON(http.StatusOK, MediaTypeJSON, string(c.Body())) },
			},
			{Method: "POST", Path: "/rpc/panic", Scope: "work", Handle: func(*Context) error { panic("secret") }},
			{Method: "POST", Path: "/rpc/fail", Scope: "work", Handle: func(*Context) error { return fail }},
			{Method: "POST", Path: "/rpc/conflict", Scope: "work", Handle: func(*Context) error {
				return &contract.Error{Code: contract.CodeConflict, Message: "secret"}
			}},
			{Method: "POST", Path: "/rpc/stream", Scope: "work", Handle: func(c *Context) error {
				return c.StreamEvents(EventStream{Source: func(_ context.Context, emit EmitFunc) error {
					return errors.Join(emit(&Event{Name: "a", Data: 1}), fail)
				}})
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	limit.left["s"] = 1
	if w := serve(s, localRequest("POST", "/rpc/call", "{}")); w.Code != 200 || w.Body.String() != `"{}"` {
		t.Fatalf("got %d %s, want the echoed body", w.Code, w.Body)
	}
	check := func(name string, r *http.Request, want contract.Code) {
		t.Helper()
		w := serve(s, r)
		wantBody := `{"error":{"code":-32000,"message":"` + string(want) + `"},"jsonrpc":"2.0"}`
		if got := strings.TrimSpace(w.Body.String()); got != wantBody || w.Header().Get("Content-Type") != "application/rpc+json" {
			t.Errorf("%s: got %d %s %s, want %s", name, w.Code, w.Header().Get("Content-Type"), got, wantBody)
		}
	}
	check("rate limited", localRequest("POST", "/rpc/call", "{}"), contract.CodeRateLimited)
	limit.left["s"] = 9
	check("too large", localRequest("POST", "/rpc/call", strings.Repeat(" ", 11)), contract.CodePayloadTooLarge)
	check("no route", localRequest("POST", "/rpc/nothing", ""), contract.CodeNotFound)
	check("another method", localRequest("PUT", "/rpc/call", ""), contract.CodeMethodNotAllowed)
	check("panic", localRequest("POST", "/rpc/panic", ""), contract.CodeInternal)
	check("internal error", localRequest("POST", "/rpc/fail", ""), contract.CodeInternal)
	check("a code that the API does not define", localRequest("POST", "/rpc/conflict", ""), contract.CodeInternal)
	foreign := localRequest("POST", "/rpc/call", "{}")
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	check("another origin", foreign, contract.CodeForbidden)
	auth.caller.Scopes = nil
	check("no scope", localRequest("POST", "/rpc/call", "{}"), contract.CodeForbidden)
	auth.caller.Scopes = []string{"work"}
	auth.err = &contract.Error{Code: contract.CodeUnauthenticated}
	check("no valid token", localRequest("POST", "/rpc/call", "{}"), contract.CodeUnauthenticated)
	auth.err = nil

	events := testkit.ReadSSE(t, serve(s, localRequest("POST", "/rpc/stream", "")).Body.String())
	if len(events) != 2 || events[1].Name != EventError || !strings.Contains(events[1].Data, `"jsonrpc":"2.0"`) {
		t.Errorf("got events %v, want an error in the format of the API at the end", events)
	}

	// Both APIs share the admission classes.
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() { serve(s, localRequest("POST", "/work", "{}")) })
		testkit.Receive(t, first.entered)
	}
	check("shed", localRequest("POST", "/rpc/call", "{}"), contract.CodeOverloaded)
	close(first.release)
	running.Wait()

	if w := serve(s, localRequest("GET", "/nothing", "")); w.Code != 404 || !strings.Contains(w.Body.String(), `"error":"not_found"`) {
		t.Errorf("outside of the prefix: got %d %s, want the format of the first API", w.Code, w.Body)
	}
}
