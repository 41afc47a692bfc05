package httpserver

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestServer_HostMustBeLoopbackWithoutAuthentication(t *testing.T) {
	cases := []struct {
		host string
		ok   bool
	}{
		{"127.0.0.1", true},
		{"127.0.0.1:8080", true},
		{"127.8.9.10:1", true},
		{"localhost", true},
		{"LocalHost:8080", true},
		{"[::1]", true},
		{"[::1]:8080", true},
		{"[::ffff:127.0.0.1]:80", true},
		{"", false},
		{"evil.example", false},
		{"evil.example:8080", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example", false},
		{"127.0.0.1.nip.io:8080", false},
		{"xlocalhost", false},
		{"10.0.0.1:8080", false},
		{"0.0.0.0", false},
		{"[::]:8080", false},
		{"169.254.169.254", false},
		{"127.1", false},
		{"2130706433", false},
		{"0x7f.0.0.1", false},
		{"127.0.0.1@evil.example", false},
	}
	local := newServer(t, Config{}, &fakeAPI{})
	authenticated := newServer(t, Config{Auth: authFor("s")}, &fakeAPI{})
	for _, c := range cases {
		t.Run(c.host, func(t *testing.T) {
			if got := isLoopbackHost(c.host); got != c.ok {
				t.Errorf("isLoopbackHost(%q): got %t, want %t", c.host, got, c.ok)
			}
			r := localRequest(http.MethodGet, "/health", "")
			r.Host = c.host
			if w := serve(local, r); (w.Code == 200) != c.ok || (w.Code == 403) == c.ok {
				t.Errorf("got %d, want accepted %t", w.Code, c.ok)
			}
			// With authentication a token is required, which a page cannot have after DNS
			// rebinding.
			if w := serve(authenticated, r); w.Code != 200 {
				t.Errorf("with authentication: got %d, want 200", w.Code)
			}
		})
	}
}

func TestServer_RejectsCrossOriginRequests(t *testing.T) {
	srv := startServer(t, Config{}, &fakeAPI{})
	cases := []struct {
		name    string
		headers []string
		status  int
	}{
		{"no browser headers", nil, 200},
		{"same origin", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"entered by the user", []string{"Sec-Fetch-Site", "none"}, 200},
		{"same origin by Origin", []string{"Origin", "http://" + srv.addr}, 200},
		{"cross site", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"same site", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"other origin", []string{"Origin", "https://evil.example"}, 403},
		{"no origin", []string{"Origin", "null"}, 403},
		{"other port", []string{"Origin", "http://127.0.0.1:1"}, 403},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := srv.send(t, "POST", "/work", "{}", c.headers...)
			if got.StatusCode != c.status {
				t.Errorf("got %d, want %d", got.StatusCode, c.status)
			}
			if cors := got.Header.Get("Access-Control-Allow-Origin"); cors != "" {
				t.Errorf("got Access-Control-Allow-Origin %q", cors)
			}
		})
	}
}

// TestServer_AcceptsOneBearerTokenOnly: no other credentials reach the Authenticator.
func TestServer_AcceptsOneBearerTokenOnly(t *testing.T) {
	auth := authFor("s")
	s := newServer(t, Config{Auth: auth}, &fakeAPI{})
	get := func(path string, values ...string) *httptest.ResponseRecorder {
		r := localRequest(http.MethodGet, path, "")
		r.Header["Authorization"] = values
		return serve(s, r)
	}
	if w := get("/work", "bEaReR t"); w.Code != 200 {
		t.Errorf("scheme in mixed case: got %d, want 200", w.Code)
	}
	verified := auth.verified.Load()
	for name, values := range map[string][]string{
		"none": nil, "empty": {""}, "no scheme": {"t"}, "no token": {"Bearer"}, "a space as the token": {"Bearer  "},
		"Basic": {"Basic dDp0"}, "DPoP": {"DPoP t"}, "two": {"Bearer t", "Bearer t"}, "one and Basic": {"Basic dDp0", "Bearer t"},
	} {
		w := get("/work", values...)
		if challenge := w.Header().Get("Www-Authenticate"); w.Code != 401 || !strings.HasPrefix(challenge, "Bearer") {
			t.Errorf("%s: got %d with WWW-Authenticate %q, want 401", name, w.Code, challenge)
		}
	}
	if w := get("/work?access_token=t"); w.Code != 401 {
		t.Errorf("token in the query: got %d, want 401", w.Code)
	}
	if n := auth.verified.Load(); n != verified {
		t.Errorf("got %d of them verified, want none", n-verified)
	}
}

func TestBearerToken(t *testing.T) {
	cases := []struct {
		values []string
		want   string
	}{
		{nil, ""},
		{[]string{"Bearer t"}, "t"},
		{[]string{"bearer  t "}, "t"},
		{[]string{"Basic t"}, ""},
		{[]string{"Bearer"}, ""},
		{[]string{"t"}, ""},
		{[]string{"Bearer t", "Bearer u"}, ""},
	}
	for _, c := range cases {
		if got := BearerToken(http.Header{"Authorization": c.values}); got != c.want {
			t.Errorf("BearerToken(%q): got %q, want %q", c.values, got, c.want)
		}
	}
}

// TestRejectToken_QuotesReason: the message of the error must not end the quoted string in the
// header.
func TestRejectToken_QuotesReason(t *testing.T) {
	c := &Context{responseWriter: responseWriter{writer: httptest.NewRecorder()}}
	err := &contract.Error{Code: contract.CodeUnauthenticated, Message: "it said \"no\\\"\r\nX-Evil: é and ended"}
	if got := c.RejectToken(err); got != error(err) {
		t.Errorf("got %v, want the same error", got)
	}
	want := `Bearer error="invalid_token", error_description="it said noX-Evil:  and ended"`
	if got := c.Header().Get("Www-Authenticate"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestServer_RejectsUnreadableBody(t *testing.T) {
	cases := []struct {
		name   string
		err    error
		detail string
	}{
		{"ended early", io.ErrUnexpectedEOF, "announced length"},
		{"too slow", os.ErrDeadlineExceeded, "did not arrive"},
		{"another error", errors.New("connection reset by a secret peer"), "cannot be read"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeAPI{}
			s := newServer(t, Config{}, f)
			r := localRequest(http.MethodPost, "/work", "")
			r.Body, r.ContentLength = io.NopCloser(iotest.ErrReader(c.err)), 100
			w := serve(s, r)
			if w.Code != 400 || !strings.Contains(w.Body.String(), c.detail) || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("got %d %s, want 400 and %q", w.Code, w.Body, c.detail)
			}
			if w.Header().Get("Connection") != "close" {
				t.Error("got the connection open, want it closed")
			}
			if f.handled.Load() != 0 {
				t.Error("got a call of the handler, want none")
			}
		})
	}
}

func TestServer_LimitsBodySize(t *testing.T) {
	srv := startServer(t, Config{}, &fakeAPI{})
	for name, c := range map[string]struct{ bytes, status int }{
		"at the limit":         {maxTestBody, 200},
		"one byte more":        {maxTestBody + 1, 413},
		"no body":              {0, 200},
		"longer than a buffer": {maxPooled * 2, 200},
	} {
		got := srv.send(t, "POST", "/work", strings.Repeat("x", c.bytes))
		if got.StatusCode != c.status || (c.status == 413) != got.Close {
			t.Errorf("%s: got %d and close %t, want %d", name, got.StatusCode, got.Close, c.status)
		}
	}
}

func TestServer_AccessLogHasNoCallerText(t *testing.T) {
	log := &testkit.LogBuffer{}
	s := newServer(t, Config{Logger: log.Logger()}, &fakeAPI{})
	serve(s, localRequest("POST", "/work", `{"prompt":"canary one"}`))
	serve(s, localRequest("GET", "/canary-three?q=canary-four", ""))
	got := log.String()
	if strings.Contains(got, "canary") {
		t.Errorf("got text of the caller in the log: %s", got)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %d lines, want 2: %s", len(lines), got)
	}
	for i, want := range []string{`"route":"/work","status":200,"outcome":"done"`, `"route":"","status":404,"outcome":"not_found"`} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("got line %s, want %s in it", lines[i], want)
		}
	}
}

func TestServer_ReleasesPermitsAfterRequests(t *testing.T) {
	f := &fakeAPI{work: func(c *Context) error {
		switch string(c.Body()) {
		case "panic":
			panic("no")
		case "error":
			return errors.New("no")
		}
		return c.WriteJSON(http.StatusOK, MediaTypeJSON, "done")
	}}
	s := newServer(t, Config{MaxInFlight: 4}, f)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() { serve(s, localRequest("POST", "/work", []string{"panic", "error", "fine", ""}[i%4])) })
	}
	all.Wait()
	if got := s.admission.inFlight(); got != 0 || f.inFlight.Load() != 0 {
		t.Errorf("got %d permits and %d requests in flight, want 0", got, f.inFlight.Load())
	}
}

func TestServer_RecoversFromPanics(t *testing.T) {
	log := &testkit.LogBuffer{}
	f := &fakeAPI{work: func(*Context) error { panic("a secret") }}
	srv := startServer(t, Config{Logger: log.Logger()}, f)
	got := srv.send(t, "POST", "/work", "{}")
	if got.StatusCode != http.StatusInternalServerError || got.code(t) != contract.CodeInternal || strings.Contains(got.body, "secret") {
		t.Errorf("got %d %s, want 500 internal and no internal text", got.StatusCode, got.body)
	}
	for _, want := range []string{got.Header.Get("X-Request-Id"), "a secret", "handler_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got no %q in the log: %s", want, log)
		}
	}
	if again := srv.send(t, "GET", "/health", ""); again.StatusCode != http.StatusOK {
		t.Errorf("next request: got %d, want 200", again.StatusCode)
	}
	if diff := cmp.Diff([]string{"internal"}, f.failures()); diff != "" {
		t.Errorf("observed errors differ (-want +got):\n%s", diff)
	}
}

// TestServer_AbortsConnectionOnPanicAfterFirstByte: the client must be able to detect that the
// response is incomplete.
func TestServer_AbortsConnectionOnPanicAfterFirstByte(t *testing.T) {
	log := &testkit.LogBuffer{}
	s := newServer(t, Config{Logger: log.Logger()}, &fakeAPI{work: func(c *Context) error {
		_, _ = io.WriteString(c, "half of ")
		panic("no")
	}})
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("got panic %v, want %v", v, http.ErrAbortHandler)
		}
		if !strings.Contains(log.String(), "panic in a request") {
			t.Errorf("got log %s", log)
		}
	}()
	serve(s, localRequest("POST", "/work", "{}"))
}
