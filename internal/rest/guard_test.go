package rest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
)

// countingAuth knows everybody and counts how often it is asked.
type countingAuth struct {
	asked  atomic.Int64
	caller contract.Caller
}

func (a *countingAuth) Verify(context.Context, string) (*contract.Caller, error) {
	a.asked.Add(1)
	return &a.caller, nil
}

func everything() contract.Caller {
	return contract.Caller{Subject: "s", AllAgents: true, Scopes: []string{"route:submit", "route:read", "agents:read", "tickets"}}
}

// halfSent opens a connection and sends a request whose body never ends.
func halfSent(t *testing.T, srv *testServer, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	// The server says that it reads the body, so that nobody has to wait and hope.
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\nContent-Type: application/json\r\n"+
		"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("got %q, %v; want 100 Continue", line, err)
	}
	if _, err := io.WriteString(conn, `{"content":{"prompt":"`); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Who sends slowly takes no place from anybody: there are two, and ten slow ones.
func TestSlowBodiesTakeNoPlace(t *testing.T) {
	meter := &counts{}
	srv := startServer(t, Config{MaxInFlight: 2, DrainTimeout: time.Millisecond, DrainGrace: time.Millisecond}, &fakeCore{meter: meter})
	for range 10 {
		halfSent(t, srv, "/api/v1/route")
	}
	for range 5 {
		if got := srv.post(t, "/api/v1/route", prompt); got.StatusCode != http.StatusOK {
			t.Errorf("beside slow bodies got %d %s, want 200", got.StatusCode, got.body)
		}
	}
	if n := srv.taken(); n != 0 {
		t.Errorf("%d places are taken by slow bodies, want 0", n)
	}
	if err := srv.stop(); err != nil {
		t.Errorf("Serve returned %v: requests that never came in whole are no reason to complain", err)
	}
	for srv.receiving.bytes() != 0 { // until the handlers have seen that their connections are gone
		runtime.Gosched()
	}
}

// stuckReader takes no byte of the answer until it is released.
type stuckReader struct {
	*httptest.ResponseRecorder
	writing, release chan struct{}
}

func (r *stuckReader) Write(p []byte) (int, error) {
	close(r.writing)
	<-r.release
	return r.ResponseRecorder.Write(p)
}

// Who takes the answer slowly takes no place from anybody either, unless all such
// answers together are too many to keep.
func TestSlowReadersTakeNoPlace(t *testing.T) {
	s := newServer(t, Config{MaxInFlight: 1}, &fakeCore{})
	for _, tc := range []struct {
		sending int64
		taken   int64
	}{{0, 0}, {maxSending, 1}} {
		s.sending.take(limits.Principal{Subject: "other"}, tc.sending)
		w := &stuckReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.ServeHTTP(w, localRequest(http.MethodPost, "/api/v1/route", prompt))
		}()
		<-w.writing
		if got := s.taken(); got != tc.taken {
			t.Errorf("with %d bytes being sent, %d places are taken by who reads slowly, want %d", tc.sending, got, tc.taken)
		}
		close(w.release)
		<-served
		if w.Code != http.StatusOK || s.taken() != 0 || s.sending.bytes() != tc.sending || s.delivering.Load() != 0 {
			t.Errorf("afterwards: %d, %d places taken, %d bytes being sent", w.Code, s.taken(), s.sending.bytes())
		}
	}
}

// A server that is full looks at neither token nor body.
func TestSheddingCostsNothing(t *testing.T) {
	core := newHolding()
	auth := &countingAuth{caller: everything()}
	srv := startServer(t, Config{MaxInFlight: 1, Auth: auth}, core.fakeCore)
	running := make(chan reply, 1)
	go func() {
		running <- srv.send(t, "POST", "/api/v1/route", strings.NewReader(prompt), "Authorization", "Bearer t", "Content-Type", typeJSON)
	}()
	<-core.entered
	asked := auth.asked.Load()
	read := false
	r := localRequest(http.MethodPost, "/api/v1/route", "")
	r.Body, r.ContentLength = bodyThatTells{&read}, 10
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
		t.Errorf("got %d with Retry-After %q, want 503 and 1", w.Code, w.Header().Get("Retry-After"))
	}
	if read || auth.asked.Load() != asked {
		t.Errorf("the body was read: %t, the token verified: %t; want neither", read, auth.asked.Load() != asked)
	}
	close(core.release)
	if got := <-running; got.StatusCode != http.StatusOK {
		t.Errorf("the request that was let in got %d, want 200", got.StatusCode)
	}
}

// Bodies that are being received are bounded together.
func TestReceivingIsBounded(t *testing.T) {
	s := newServer(t, Config{}, &fakeCore{})
	post := func(prompt string) int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, localRequest(http.MethodPost, "/api/v1/route", `{"content":{"prompt":"p"},"session_id":"`+prompt+`"}`))
		return w.Code
	}
	long := strings.Repeat("x", maxPooled) // no buffer of the pool has that much
	other := limits.Principal{Subject: "other"}
	if !s.receiving.take(other, maxReceiving) {
		t.Fatal("an empty pot takes nothing")
	}
	if got := post(long); got != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503", got)
	}
	if got := s.receiving.bytes(); got != maxReceiving {
		t.Errorf("%d bytes are counted afterwards, want those of before", got)
	}
	s.receiving.give(other, maxReceiving)
	if got := post(long); got != http.StatusUnprocessableEntity { // which has been read
		t.Errorf("with room got %d, want 422", got)
	}
	if got := s.receiving.bytes(); got != 0 {
		t.Errorf("%d bytes are counted after the request, want 0", got)
	}
}

// fewTimes lets every caller ask so many times.
type fewTimes struct{ left map[string]int }

func (f fewTimes) Take(c *contract.Caller) (contract.Limit, bool) {
	left := f.left[c.Subject]
	f.left[c.Subject] = max(left-1, 0)
	return contract.Limit{Policy: "classify", Quota: 2, Window: 1500 * time.Millisecond, Remaining: max(left-1, 0), Reset: 2400 * time.Millisecond}, left > 0
}

func TestRateLimit(t *testing.T) {
	auth := &countingAuth{caller: everything()}
	limit := fewTimes{map[string]int{"s": 2, "other": 1}}
	core := &fakeCore{}
	srv := startServer(t, Config{Auth: auth, Classify: limit}, core)
	send := func(method, path, body string) reply {
		return srv.do(t, method, path, body, "Authorization", "Bearer t", "Content-Type", typeJSON)
	}
	if got := send("POST", "/api/v1/route", prompt); got.StatusCode != http.StatusOK || got.Header.Get("RateLimit") != `"classify";r=1;t=3` {
		t.Errorf("got %d with RateLimit %q, want 200 and 1 left", got.StatusCode, got.Header.Get("RateLimit"))
	}
	if got := send("POST", "/api/v1/classify", prompt); got.StatusCode != http.StatusOK || got.Header.Get("RateLimit-Policy") != `"classify";q=2;w=2` {
		t.Errorf("got %d with RateLimit-Policy %q, want 200 and the quota", got.StatusCode, got.Header.Get("RateLimit-Policy"))
	}
	for _, path := range []string{"/api/v1/route", "/api/v1/classify"} {
		got := send("POST", path, prompt)
		p := problemOf(t, got)
		if p.Code != contract.CodeRateLimited || got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") != "3" || got.Header.Get("RateLimit") != `"classify";r=0;t=3` {
			t.Errorf("%s: got %d %s, Retry-After %q, RateLimit %q", path, got.StatusCode, p.Code, got.Header.Get("Retry-After"), got.Header.Get("RateLimit"))
		}
	}
	for _, path := range []string{"/api/v1/agents", "/api/v1/decisions"} {
		if got := send("GET", path, ""); got.StatusCode != http.StatusOK || got.Header.Get("RateLimit") != "" {
			t.Errorf("%s: got %d with RateLimit %q: only what classifies is limited", path, got.StatusCode, got.Header.Get("RateLimit"))
		}
	}
	auth.caller.Subject = "other"
	if got := send("POST", "/api/v1/route", prompt); got.StatusCode != http.StatusOK {
		t.Errorf("another caller got %d, want 200", got.StatusCode)
	}
	read := false
	r := localRequest(http.MethodPost, "/api/v1/route", "")
	r.Body, r.ContentLength = bodyThatTells{&read}, 10
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, r)
	if w.Code != 429 || read {
		t.Errorf("got %d and the body was read: %t, want 429 before it is", w.Code, read)
	}
}

// Only the one form of a token there is reaches who verifies it.
func TestOneTokenInOneHeader(t *testing.T) {
	auth := &countingAuth{caller: everything()}
	s := newServer(t, Config{Auth: auth}, &fakeCore{})
	get := func(path string, values ...string) *httptest.ResponseRecorder {
		r := localRequest(http.MethodGet, path, "")
		r.Header["Authorization"] = values
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if w := get("/api/v1/agents", "bEaReR t"); w.Code != 200 {
		t.Errorf("the scheme in other letters: got %d, want 200", w.Code)
	}
	asked := auth.asked.Load()
	for name, values := range map[string][]string{
		"none": nil, "empty": {""}, "no scheme": {"t"}, "no token": {"Bearer"}, "a space for a token": {"Bearer  "},
		"Basic": {"Basic dDp0"}, "DPoP": {"DPoP t"}, "two": {"Bearer t", "Bearer t"}, "one and Basic": {"Basic dDp0", "Bearer t"},
	} {
		w := get("/api/v1/agents", values...)
		if challenge := w.Header().Get("Www-Authenticate"); w.Code != 401 || !strings.HasPrefix(challenge, "Bearer") {
			t.Errorf("%s: got %d with WWW-Authenticate %q, want 401", name, w.Code, challenge)
		}
	}
	if w := get("/api/v1/agents?access_token=t"); w.Code != 401 {
		t.Errorf("a token in the query: got %d, want 401", w.Code)
	}
	if n := auth.asked.Load(); n != asked {
		t.Errorf("%d of them were verified, want none", n-asked)
	}
}

// What a token's error says goes into a header, where it cannot break out.
func TestChallenge(t *testing.T) {
	x := &exchange{ResponseWriter: httptest.NewRecorder()}
	err := &contract.Error{Code: contract.CodeUnauthenticated, Message: "it said \"no\\\"\r\nX-Evil: é and ended"}
	if got := challenge(x, err); got != error(err) {
		t.Errorf("the error became %v", got)
	}
	want := `Bearer error="invalid_token", error_description="it said noX-Evil:  and ended"`
	if got := x.Header().Get("Www-Authenticate"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Checks of a registry are few at a time, and keep nobody from routing.
func TestChecksHaveALaneOfTheirOwn(t *testing.T) {
	srv := startServer(t, Config{MaxInFlight: 1}, &fakeCore{})
	check := func() int {
		return srv.do(t, "POST", "/api/v1/registry/lint", "clients: {}", "Content-Type", "text/yaml").StatusCode
	}
	srv.lanes[laneChecks].taken.Store(maxChecks)
	if got := check(); got != http.StatusServiceUnavailable {
		t.Errorf("one check too many got %d, want 503", got)
	}
	if got := srv.post(t, "/api/v1/route", prompt); got.StatusCode != http.StatusOK {
		t.Errorf("a request beside them got %d, want 200", got.StatusCode)
	}
	srv.lanes[laneChecks].taken.Store(0)
	srv.lanes[laneWork].taken.Store(1)
	if got := check(); got != http.StatusOK {
		t.Errorf("a check on a full server got %d, want 200", got)
	}
	srv.lanes[laneWork].taken.Store(0)
}
