package httpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/testkit"
)

// sendHalf opens a connection and sends a request whose body does not end.
func sendHalf(t *testing.T, srv *testServer, path string) {
	t.Helper()
	conn, err := net.Dial("tcp", srv.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	// "100 Continue" signals that the server reads the body.
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
}

func TestAdmission_SlowBodiesHoldNoPermit(t *testing.T) {
	srv := startServer(t, Config{MaxInFlight: 2, DrainTimeout: time.Millisecond, DrainGrace: time.Millisecond}, &fakeAPI{})
	for range 10 {
		sendHalf(t, srv, "/work")
	}
	for range 5 {
		if got := srv.send(t, "POST", "/work", "{}"); got.StatusCode != http.StatusOK {
			t.Errorf("got %d %s while slow bodies arrive, want 200", got.StatusCode, got.body)
		}
	}
	if n := srv.admission.inFlight(); n != 0 {
		t.Errorf("got %d permits held by slow bodies, want 0", n)
	}
	if err := srv.stop(); err != nil {
		t.Errorf("Serve: got %v, want nil, because no request was received completely", err)
	}
	testkit.Eventually(t, "the memory of the bodies is released", func() bool { return srv.requestMemory.bytes() == 0 })
}

// stuckWriter blocks the first write until it is released.
type stuckWriter struct {
	*httptest.ResponseRecorder
	writing, release chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	close(w.writing)
	<-w.release
	return w.ResponseRecorder.Write(p)
}

// TestAdmission_SlowReadersHoldNoPermit: a response that is being written holds no permit, unless
// such responses use too much memory.
func TestAdmission_SlowReadersHoldNoPermit(t *testing.T) {
	s := newServer(t, Config{MaxInFlight: 1}, &fakeAPI{})
	for _, tc := range []struct{ reserved, permits int64 }{{0, 0}, {maxResponseMemory, 1}} {
		s.responseMemory.reserveBytes(limits.Principal{Subject: "other"}, tc.reserved)
		w := &stuckWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.ServeHTTP(w, localRequest(http.MethodPost, "/work", "{}"))
		}()
		testkit.WaitClosed(t, w.writing)
		if got := s.admission.inFlight(); got != tc.permits {
			t.Errorf("%d bytes reserved: got %d permits held by a slow reader, want %d", tc.reserved, got, tc.permits)
		}
		close(w.release)
		testkit.WaitClosed(t, served)
		if w.Code != http.StatusOK || s.runningRequests() != 0 || s.responseMemory.bytes() != tc.reserved {
			t.Errorf("after the release: got %d, %d running, %d bytes reserved", w.Code, s.runningRequests(), s.responseMemory.bytes())
		}
	}
}

// readRecorder is a body that records whether it was read.
type readRecorder struct{ read *bool }

func (b readRecorder) Read([]byte) (int, error) {
	*b.read = true
	return 0, io.EOF
}

func (readRecorder) Close() error { return nil }

// TestAdmission_ShedsBeforeTokenAndBody: a full server neither verifies the token nor reads the
// body.
func TestAdmission_ShedsBeforeTokenAndBody(t *testing.T) {
	f, auth := newBlockedAPI(), authFor("s")
	srv := startServer(t, Config{MaxInFlight: 1, Auth: auth}, &f.fakeAPI)
	running := srv.sendInBackground()
	testkit.Receive(t, f.entered)
	verified, read := auth.verified.Load(), false
	r := localRequest(http.MethodPost, "/work", "")
	r.Body, r.ContentLength = readRecorder{&read}, 10
	w := serve(srv.Server, r)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
		t.Errorf("got %d with Retry-After %q, want 503 and 1", w.Code, w.Header().Get("Retry-After"))
	}
	if read || auth.verified.Load() != verified {
		t.Errorf("got body read %t, token verified %t; want neither", read, auth.verified.Load() != verified)
	}
	close(f.release)
	if got := testkit.Receive(t, running); got != http.StatusOK {
		t.Errorf("admitted request: got %d, want 200", got)
	}
}

func TestAdmission_ShedsWhenFull(t *testing.T) {
	f := newBlockedAPI()
	srv := startServer(t, Config{MaxInFlight: 2}, &f.fakeAPI)
	first, second := srv.sendInBackground(), srv.sendInBackground()
	testkit.Receive(t, f.entered)
	testkit.Receive(t, f.entered)
	if got := f.inFlight.Load(); got != 2 {
		t.Errorf("got %d in flight, want 2", got)
	}
	for _, method := range []string{"POST", "GET"} {
		got := srv.send(t, method, "/work", "{}")
		if got.StatusCode != http.StatusServiceUnavailable || got.code(t) != contract.CodeOverloaded || got.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: got %d %s with Retry-After %q, want 503 overloaded and 1", method, got.StatusCode, got.body, got.Header.Get("Retry-After"))
		}
	}
	for _, path := range []string{"POST /finish", "POST /heavy", "GET /health"} { // other classes
		method, path, _ := strings.Cut(path, " ")
		if got := srv.send(t, method, path, ""); got.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, want 200 on a full server", path, got.StatusCode)
		}
	}
	close(f.release)
	if a, b := testkit.Receive(t, first), testkit.Receive(t, second); a != 200 || b != 200 {
		t.Errorf("admitted requests: got %d and %d, want 200", a, b)
	}
	if got := srv.send(t, "GET", "/work", ""); got.StatusCode != http.StatusOK {
		t.Errorf("after the release: got %d, want 200", got.StatusCode)
	}
	if failures := f.failures(); f.inFlight.Load() != 0 || len(failures) != 1 || failures[0] != "overloaded" {
		t.Errorf("got %d in flight and errors %v, want 0 and one overloaded", f.inFlight.Load(), failures)
	}
}

func TestAdmission_HeavyRequestsHaveTheirOwnClass(t *testing.T) {
	s := newServer(t, Config{MaxInFlight: 1}, &fakeAPI{})
	post := func(path string) int { return serve(s, localRequest("POST", path, "{}")).Code }
	s.admission.classes[ClassHeavy].taken.Store(maxHeavy)
	if got := post("/heavy"); got != http.StatusServiceUnavailable {
		t.Errorf("heavy request above the limit: got %d, want 503", got)
	}
	if got := post("/work"); got != http.StatusOK {
		t.Errorf("other request: got %d, want 200", got)
	}
	s.admission.classes[ClassHeavy].taken.Store(0)
	s.admission.classes[ClassWork].taken.Store(1)
	if got := post("/heavy"); got != http.StatusOK {
		t.Errorf("heavy request on a full server: got %d, want 200", got)
	}
}

func TestAdmission_LimitsMemoryOfBodies(t *testing.T) {
	f := &fakeAPI{}
	s := newServer(t, Config{}, f)
	post := func() int {
		return serve(s, localRequest(http.MethodPost, "/work", strings.Repeat("x", 2*maxPooled))).Code
	}
	other := limits.Principal{Subject: "other"}
	if !s.requestMemory.reserveBytes(other, maxRequestMemory) {
		t.Fatal("got the size of the whole budget rejected, want it reserved")
	}
	if got := post(); got != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503", got)
	}
	if got := s.requestMemory.bytes(); got != maxRequestMemory {
		t.Errorf("got %d bytes reserved after the rejection, want %d", got, maxRequestMemory)
	}
	s.requestMemory.releaseBytes(other, maxRequestMemory)
	if got := post(); got != http.StatusOK {
		t.Errorf("with free memory: got %d, want 200", got)
	}
	if got := s.requestMemory.bytes(); got != 0 {
		t.Errorf("got %d bytes reserved after the request, want 0", got)
	}
}

// countdown is a limiter that permits each caller the number of requests in left.
type countdown struct{ left map[string]int }

func (l *countdown) Take(c *contract.Caller) (contract.Limit, bool) {
	left := l.left[c.Subject]
	l.left[c.Subject] = max(left-1, 0)
	return contract.Limit{Policy: "classify", Quota: 2, Window: 1500 * time.Millisecond, Remaining: max(left-1, 0), Reset: 2400 * time.Millisecond}, left > 0
}

func TestServer_AppliesRateLimitBeforeReadingBody(t *testing.T) {
	auth := authFor("s")
	srv := startServer(t, Config{Auth: auth}, &fakeAPI{limit: &countdown{map[string]int{"s": 1, "other": 1}}})
	got := srv.send(t, "POST", "/work", "{}")
	if got.StatusCode != http.StatusOK || got.Header.Get("RateLimit") != `"classify";r=0;t=3` || got.Header.Get("RateLimit-Policy") != `"classify";q=2;w=2` {
		t.Errorf("got %d with RateLimit %q and RateLimit-Policy %q", got.StatusCode, got.Header.Get("RateLimit"), got.Header.Get("RateLimit-Policy"))
	}
	got = srv.send(t, "POST", "/work", "{}")
	if got.StatusCode != http.StatusTooManyRequests || got.code(t) != contract.CodeRateLimited || got.Header.Get("Retry-After") != "3" || got.Header.Get("RateLimit") != `"classify";r=0;t=3` {
		t.Errorf("got %d %s, Retry-After %q, RateLimit %q", got.StatusCode, got.body, got.Header.Get("Retry-After"), got.Header.Get("RateLimit"))
	}
	if got := srv.send(t, "GET", "/work", ""); got.StatusCode != http.StatusOK || got.Header.Get("RateLimit") != "" {
		t.Errorf("route without a limit: got %d with RateLimit %q", got.StatusCode, got.Header.Get("RateLimit"))
	}
	read := false
	r := localRequest(http.MethodPost, "/work", "")
	r.Body, r.ContentLength = readRecorder{&read}, 10
	if w := serve(srv.Server, r); w.Code != 429 || read {
		t.Errorf("got %d and body read %t, want 429 and an unread body", w.Code, read)
	}
	auth.caller.Subject = "other"
	if got := srv.send(t, "POST", "/work", "{}"); got.StatusCode != http.StatusOK {
		t.Errorf("another caller: got %d, want 200", got.StatusCode)
	}
}

// TestAdmission_ReservesPermitsForOtherCallers: one caller with many long requests leaves permits
// for others; without other callers it gets most of them.
func TestAdmission_ReservesPermitsForOtherCallers(t *testing.T) {
	a := newAdmissionController(&Config{MaxInFlight: 80, Meter: discardMeter{}}, true)
	acquire := func(subject string) (admissionPermit, bool) {
		permit, err := a.acquire(ClassWork, &contract.Caller{Subject: subject})
		return permit, err == nil
	}
	var held []admissionPermit
	for range 100 {
		if p, ok := acquire("greedy"); ok {
			held = append(held, p)
		}
	}
	if len(held) != 70 {
		t.Errorf("got %d of 80 permits for a single caller, want 70", len(held))
	}
	for i := range 10 {
		p, ok := acquire("other")
		if !ok {
			t.Errorf("got request %d of another caller shed", i)
		}
		held = append(held, p)
	}
	if _, ok := acquire("third"); ok {
		t.Error("got an 81st permit")
	}
	for _, p := range held {
		p.release()
		p.release() // has no effect
	}
	if a.inFlight() != 0 || len(a.shares[ClassWork].held) != 0 {
		t.Errorf("after the release: got %d permits and the shares of %d callers held", a.inFlight(), len(a.shares[ClassWork].held))
	}
}

// The limit of one caller applies to all callers of a tenant, because a tenant may have any number
// of them.
func TestAdmission_ReservesPermitsForOtherTenants(t *testing.T) {
	a := newAdmissionController(&Config{MaxInFlight: 80, MaxReaders: 80, Meter: discardMeter{}}, true)
	for _, class := range []Class{ClassWork, ClassStream, ClassHeavy} {
		for i := range 100 {
			_, _ = a.acquire(class, &contract.Caller{Tenant: "greedy", Subject: strconv.Itoa(i)})
		}
		if _, err := a.acquire(class, &contract.Caller{Tenant: "other", Subject: "1"}); err != nil {
			t.Errorf("class %d: got %v for a caller of another tenant, want a permit", class, err)
		}
	}
}

// TestPermitShares: a caller with few permits is admitted as long as one is free, and the count for
// each caller is exact.
func TestPermitShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		var s permitShares[limits.Principal]
		held, taken := map[limits.Principal]int{}, 0
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			p := limits.Principal{Subject: strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "caller"))}
			if held[p] > 0 && rapid.Bool().Draw(t, "release") {
				s.release(p)
				held[p]--
				taken--
				continue
			}
			if taken == limit {
				continue // the semaphore is exhausted
			}
			ok := s.acquire(p, taken+1 > limit-limit/8, limit/2)
			if want := held[p] < limit/2 || taken+1 <= limit-limit/8; ok != want {
				t.Fatalf("%s holds %d of %d with %d taken: got admitted %t", p.Subject, held[p], limit, taken, ok)
			}
			if ok {
				held[p]++
				taken++
			}
		}
		for p, n := range held {
			if s.held[p] != n {
				t.Fatalf("%s: got count %d, want %d", p.Subject, s.held[p], n)
			}
		}
	})
}

func (b *memoryBudget) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// TestMemoryBudget: no owner can use the whole budget, and the count is exact.
func TestMemoryBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newMemoryBudget(100, 40)
		held := map[limits.Principal]int64{}
		total := int64(0)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			p := limits.Principal{Subject: strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "caller"))}
			n := rapid.Int64Range(1, 50).Draw(t, "bytes")
			if rapid.Bool().Draw(t, "release") {
				n = min(n, held[p])
				b.releaseBytes(p, n)
				held[p] -= n
				total -= n
				continue
			}
			fits := total+n <= b.limit && held[p]+n <= b.limitPerOwner
			if b.reserveBytes(p, n) != fits {
				t.Fatalf("%d bytes for %s, which holds %d of %d: got reserved %t", n, p.Subject, held[p], total, !fits)
			}
			if fits {
				held[p] += n
				total += n
			}
		}
		for p, n := range held {
			if b.usedBy[p] != n {
				t.Fatalf("%s: got count %d, want %d", p.Subject, b.usedBy[p], n)
			}
		}
		if b.bytes() != total {
			t.Fatalf("got %d bytes, want %d", b.bytes(), total)
		}
	})
}

// tenantAuth accepts tokens of the form tenant/subject.
type tenantAuth struct{}

func (tenantAuth) Verify(_ context.Context, token string) (*contract.Caller, error) {
	tenant, subject, _ := strings.Cut(token, "/")
	return &contract.Caller{Tenant: tenant, Subject: subject, Scopes: []string{"work"}}, nil
}

// heldBody is a body that ends when it is released.
type heldBody struct {
	io.Reader
	read    chan<- struct{} // receives a value when the text was read
	release <-chan struct{}
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.read <- struct{}{}
		<-b.release
	}
	return n, err
}

// All callers of a tenant, or a caller without a tenant, use one share of the memory for bodies.
// Others are served meanwhile.
func TestServer_LimitsMemoryOfTenant(t *testing.T) {
	s := newServer(t, Config{Auth: tenantAuth{}}, &fakeAPI{})
	request := func(token string, body io.Reader) *http.Request {
		r := localRequest(http.MethodPost, "/work", "")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Body, r.ContentLength = io.NopCloser(body), maxTestBody
		return r
	}
	text := strings.Repeat("x", maxTestBody-1)
	for _, greedy := range []string{"greedy/userN", "/alone"} {
		read, release, codes := make(chan struct{}), make(chan struct{}), make(chan int, 2*maxRequestMemory/maxTestBody)
		n, rejected := 0, 0
		for ; n < cap(codes) && rejected == 0; n++ {
			r := request(strings.ReplaceAll(greedy, "N", strconv.Itoa(n)), &heldBody{strings.NewReader(text), read, release})
			go func() { codes <- serve(s, r).Code }()
			select {
			case <-read:
			case code := <-codes:
				rejected = code
			case <-time.After(testkit.Patience):
				t.Fatal("got the body unread")
			}
		}
		if got := s.requestMemory.bytes(); rejected != http.StatusServiceUnavailable || got > maxRequestMemory/memoryShares {
			t.Errorf("%s: got status %d after %d bodies with %d bytes, want 503 within a share of the memory", greedy, rejected, n, got)
		}
		if got := serve(s, request("other/alice", strings.NewReader(text))).Code; got != http.StatusOK {
			t.Errorf("while %s uses its share: got %d for another tenant, want 200", greedy, got)
		}
		close(release)
		for range n - 1 {
			testkit.Receive(t, codes)
		}
	}
}
