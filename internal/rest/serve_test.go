package rest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// forever is longer than any test.
const forever = time.Hour

// holding is a core whose requests stay until they are released or cancelled.
type holding struct {
	*fakeCore
	entered chan string   // session ids, as the requests arrive
	release chan struct{} // closed: let them go
	ended   chan error    // why a request's context ended, when it did
	deaf    bool          // do not listen to the context
}

func newHolding() *holding {
	h := &holding{
		fakeCore: &fakeCore{},
		entered:  make(chan string, 16),
		release:  make(chan struct{}),
		ended:    make(chan error, 16),
	}
	h.handle = func(ctx context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		h.entered <- req.SessionID
		done := ctx.Done()
		if h.deaf {
			done = nil
		}
		select {
		case <-h.release:
			return completed(req), nil
		case <-done:
			h.ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}
	}
	return h
}

// inBackground sends a routing request and delivers its status, 0 when the
// connection broke.
func inBackground(srv *testServer, session string) <-chan int {
	status := make(chan int, 1)
	body := `{"content":{"prompt":"p"},"session_id":"` + session + `"}`
	go func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+srv.addr+"/api/v1/route", strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := srv.client.Do(req)
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

func TestDrainLetsRunningRequestsEnd(t *testing.T) {
	core := newHolding()
	core.ready = Readiness{Status: ReadinessReady}
	srv := startServer(t, Config{DrainTimeout: forever}, core.fakeCore)
	running := inBackground(srv, "a")
	<-core.entered

	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()
	// Readiness turns before the listener closes, which can be seen from here.
	for {
		conn, err := net.Dial("tcp", srv.addr)
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, localRequest("GET", "/readyz", ""))
	if w.Code != 503 || !strings.Contains(w.Body.String(), `"status":"draining"`) {
		t.Errorf("readyz says %d %s while draining, want 503 and draining", w.Code, w.Body)
	}
	select {
	case err := <-stopped:
		t.Fatalf("Serve returned %v while a request was running", err)
	default:
	}
	close(core.release)
	if got := <-running; got != 200 {
		t.Errorf("the running request got %d, want 200", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestDrainCancelsWhatDoesNotEnd(t *testing.T) {
	core := newHolding()
	srv := startServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: forever}, core.fakeCore)
	running := inBackground(srv, "a")
	<-core.entered
	if err := srv.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if cause := <-core.ended; !errors.Is(cause, errStopping) {
		t.Errorf("the context ended with %v, want %v", cause, errStopping)
	}
	if got := <-running; got != 503 {
		t.Errorf("the request got %d, want 503", got)
	}
}

func TestDrainGivesUpOnTheDeaf(t *testing.T) {
	core := newHolding()
	core.deaf = true
	s := newServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: time.Millisecond}, core.fakeCore)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	srv := &testServer{Server: s, addr: ln.Addr().String(), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	running := inBackground(srv, "a")
	<-core.entered
	cancel()
	if err := <-served; err == nil || !strings.Contains(err.Error(), "1 requests did not end") {
		t.Errorf("Serve returned %v, want an error that counts the request", err)
	}
	if got := <-running; got != 0 {
		t.Errorf("the request got %d, want a broken connection", got)
	}
	close(core.release)
}

func TestServeRefusesOtherAddresses(t *testing.T) {
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip(err)
	}
	if err := newServer(t, Config{}, &fakeCore{}).Serve(t.Context(), ln); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("without authentication Serve returned %v, want a refusal", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is still open: %v", err)
	}
}

func TestServeReturnsTheListenersError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	if err := newServer(t, Config{}, &fakeCore{}).Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

func TestCallerWhoLeavesCancelsTheWork(t *testing.T) {
	core := newHolding()
	srv := startServer(t, Config{}, core.fakeCore)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+srv.addr+"/api/v1/route", strings.NewReader(prompt))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	go func() {
		<-core.entered
		leave()
	}()
	if resp, err := srv.client.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("got %d, want an aborted request", resp.StatusCode)
	}
	if cause := <-core.ended; !errors.Is(cause, context.Canceled) {
		t.Errorf("the context ended with %v, want %v", cause, context.Canceled)
	}
}

func TestOverload(t *testing.T) {
	core := newHolding()
	meter := &counts{}
	core.meter = meter
	srv := startServer(t, Config{MaxInFlight: 2}, core.fakeCore)
	first, second := inBackground(srv, "a"), inBackground(srv, "b")
	<-core.entered
	<-core.entered

	for _, path := range []string{"/api/v1/route", "/api/v1/classify"} {
		got := srv.post(t, path, prompt)
		if p := problemOf(t, got); got.StatusCode != http.StatusServiceUnavailable || p.Code != contract.CodeOverloaded || got.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: got %d %s with Retry-After %q, want 503 overloaded and 1", path, got.StatusCode, p.Code, got.Header.Get("Retry-After"))
		}
	}
	if w := overHandler(srv, "/api/v1/agents"); w.Code != 503 {
		t.Errorf("/api/v1/agents: got %d, want 503", w.Code)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/.well-known/jwks.json"} {
		if got := srv.get(t, path); got.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, want 200 on a full server", path, got.StatusCode)
		}
	}
	close(core.release)
	if a, b := <-first, <-second; a != 200 || b != 200 {
		t.Errorf("the requests that were let in got %d and %d, want 200", a, b)
	}
	if got := srv.post(t, "/api/v1/route", prompt); got.StatusCode != http.StatusOK {
		t.Errorf("afterwards got %d, want 200", got.StatusCode)
	}
	if meter.inFlight != 0 || len(meter.outcomes) != 1 || meter.outcomes[0] != "overloaded" {
		t.Errorf("got %d in flight and outcomes %v, want 0 and one overloaded", meter.inFlight, meter.outcomes)
	}
}

func overHandler(srv *testServer, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, localRequest("GET", path, ""))
	return w
}

// Slots are given back however a request ends.
func TestSlotsAreGivenBack(t *testing.T) {
	core := &fakeCore{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		switch req.SessionID {
		case "panic":
			panic("no")
		case "error":
			return nil, errors.New("no")
		}
		return completed(req), nil
	}}
	s := newServer(t, Config{MaxInFlight: 4}, core)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			session := []string{"panic", "error", "fine", ""}[i%4]
			s.ServeHTTP(httptest.NewRecorder(), localRequest("POST", "/api/v1/route", `{"content":{"prompt":"p"},"session_id":"`+session+`"}`))
		})
	}
	all.Wait()
	if got := s.taken(); got != 0 {
		t.Errorf("got %d slots taken, want 0", got)
	}
}

func TestPanics(t *testing.T) {
	log := &logLines{}
	core := &fakeCore{handle: func(context.Context, *contract.Request, *contract.Caller) (*contract.Response, error) {
		panic("a secret")
	}}
	srv := startServer(t, Config{Logger: log.logger()}, core)
	got := srv.post(t, "/api/v1/route", prompt)
	p := problemOf(t, got)
	if got.StatusCode != http.StatusInternalServerError || p.Code != contract.CodeInternal || strings.Contains(string(got.body), "secret") {
		t.Errorf("got %d %s, want 500 internal and no internal text", got.StatusCode, got.body)
	}
	text := log.String()
	for _, want := range []string{p.RequestID, "a secret", "serve_test.go"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log misses %q: %s", want, text)
		}
	}
	if again := srv.get(t, "/healthz"); again.StatusCode != http.StatusOK {
		t.Errorf("afterwards got %d, want 200", again.StatusCode)
	}
}

// A handler that panics in the middle of its answer must not look complete.
func TestPanicAfterTheAnswerBegan(t *testing.T) {
	core := &fakeCore{}
	deps := core.deps()
	deps.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of ")
		panic("no")
	})
	log := &logLines{}
	s, err := New(Config{Logger: log.logger()}, deps)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("got panic %v, want %v", v, http.ErrAbortHandler)
		}
		if !strings.Contains(log.String(), "panic in a request") {
			t.Errorf("got log %s", log)
		}
	}()
	s.ServeHTTP(httptest.NewRecorder(), localRequest("GET", "/metrics", ""))
}

// raw sends bytes and returns the status lines of the answers, to the end of the
// connection.
func raw(t *testing.T, srv *testServer, text string) []string {
	t.Helper()
	conn, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	r := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return lines
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		lines = append(lines, resp.Status[:3])
	}
}

// Requests that two servers could read differently are refused, and none of them
// reaches the core as something else than was sent.
func TestAmbiguousFraming(t *testing.T) {
	head := "POST /api/v1/route HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	cases := []struct {
		name, text string
		want       []string
		prompts    int // how many requests the core sees
	}{
		{"plain", head + "Connection: close\r\nContent-Length: 70\r\n\r\n" + prompt, []string{"200"}, 1},
		{"two lengths", head + "Content-Length: 70\r\nContent-Length: 5\r\n\r\n" + prompt, []string{"400"}, 0},
		{"two lengths in one", head + "Content-Length: 70, 5\r\n\r\n" + prompt, []string{"400"}, 0},
		{"signed length", head + "Content-Length: +70\r\n\r\n" + prompt, []string{"400"}, 0},
		{"negative length", head + "Content-Length: -1\r\n\r\n" + prompt, []string{"400"}, 0},
		{"length with a blank", head + "Content-Length : 70\r\n\r\n" + prompt, []string{"400"}, 0},
		{"short length hides a request", head + "Content-Length: 2\r\n\r\n{}GET /api/v1/agents HTTP/9.9\r\n\r\n", []string{"422", "505"}, 0},
		{"long length", head + "Content-Length: 500\r\n\r\n" + prompt, []string{"400"}, 0},
		{"huge length", head + "Content-Length: 99999999999\r\n\r\n" + prompt, []string{"413"}, 0},
		{"unknown encoding", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", []string{"501"}, 0},
		{"hidden encoding", head + "Transfer-Encoding: xchunked\r\nContent-Length: 70\r\n\r\n" + prompt, []string{"501"}, 0},
		{"broken chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + prompt + "\r\n0\r\n\r\n", []string{"400"}, 0},
		{"folded header", head + "X-A: b\r\n c\r\nContent-Length : 70\r\n\r\n" + prompt, []string{"400"}, 0},
		{"NUL in a header", head + "X-A: \x00\r\nContent-Length: 70\r\n\r\n" + prompt, []string{"400"}, 0},
		{"two hosts", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", []string{"400"}, 0},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n", []string{"400"}, 0},
		{"no host in 1.0", "GET /healthz HTTP/1.0\r\n\r\n", []string{"403"}, 0},
		{"foreign host in the target", "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", []string{"403"}, 0},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", []string{"404"}, 0},
		{"connect", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\nConnection: close\r\n\r\n", []string{"403"}, 0},
		{"large headers", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("a", maxHeaderBytes+8<<10) + "\r\n\r\n", []string{"431"}, 0},
		{"expects what nobody gives", head + "Expect: 200-ok\r\nContent-Length: 70\r\n\r\n" + prompt, []string{"417"}, 0},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []string{"403"}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core := &fakeCore{}
			srv := startServer(t, Config{}, core)
			got := raw(t, srv, c.text)
			if strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if len(core.got) != c.prompts {
				t.Errorf("the core was asked %d times, want %d", len(core.got), c.prompts)
			}
		})
	}
}
