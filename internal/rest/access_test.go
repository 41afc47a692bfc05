package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestHostMustBeLoopback(t *testing.T) {
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
	open := startServer(t, Config{Auth: staticAuth{caller: &contract.Caller{Subject: "s", AllScopes: true}}}, &fakeCore{})
	for _, c := range cases {
		t.Run(c.host, func(t *testing.T) {
			if got := loopbackHost(c.host); got != c.ok {
				t.Errorf("loopbackHost(%q) = %t, want %t", c.host, got, c.ok)
			}
			r := localRequest(http.MethodGet, "/healthz", "")
			r.Host = c.host
			w := httptest.NewRecorder()
			newServer(t, Config{}, &fakeCore{}).ServeHTTP(w, r)
			if (w.Code == 200) != c.ok || (w.Code == 403) == c.ok {
				t.Errorf("got %d", w.Code)
			}
		})
	}
	// With authentication a token is needed, which a rebound page does not have.
	if got := open.do(t, "GET", "/api/v1/agents", "", "Host", "router.example", "Authorization", "Bearer t"); got.StatusCode != http.StatusOK {
		t.Errorf("with authentication, got %d, want 200", got.StatusCode)
	}
}

func TestCrossOriginRequestsAreRefused(t *testing.T) {
	core := &fakeCore{}
	srv := startServer(t, Config{}, core)
	cases := []struct {
		name    string
		headers []string
		status  int
	}{
		{"no browser", nil, 200},
		{"same origin", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"typed in", []string{"Sec-Fetch-Site", "none"}, 200},
		{"same origin by Origin", []string{"Origin", "http://" + srv.addr}, 200},
		{"cross site", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"same site", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"other origin", []string{"Origin", "https://evil.example"}, 403},
		{"no origin", []string{"Origin", "null"}, 403},
		{"other port", []string{"Origin", "http://127.0.0.1:1"}, 403},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := srv.post(t, "/api/v1/route", prompt, c.headers...)
			if got.StatusCode != c.status {
				t.Errorf("got %d, want %d", got.StatusCode, c.status)
			}
			if cors := got.Header.Get("Access-Control-Allow-Origin"); cors != "" {
				t.Errorf("got Access-Control-Allow-Origin %q", cors)
			}
		})
	}
}

// staticAuth knows one caller, or none.
type staticAuth struct {
	caller *contract.Caller
	err    error
}

func (a staticAuth) Verify(context.Context, string) (*contract.Caller, error) { return a.caller, a.err }

func TestScopes(t *testing.T) {
	requests := map[string]struct{ method, path, body, contentType string }{
		"route":    {"POST", "/api/v1/route", prompt, typeJSON},
		"classify": {"POST", "/api/v1/classify", prompt, typeJSON},
		"request":  {"GET", "/api/v1/requests/" + testRequest, "", ""},
		"events":   {"GET", "/api/v1/requests/" + testRequest + "/events", "", ""},
		"cancel":   {"POST", "/api/v1/requests/" + testRequest + "/cancel", "", ""},
		"erase":    {"DELETE", "/api/v1/requests/" + testRequest, "", ""},
		"log":      {"GET", "/api/v1/decisions", "", ""},
		"result":   {"POST", "/api/v1/tasks/" + testTask + "/result", `{"status":"success"}`, typeJSON},
		"progress": {"POST", "/api/v1/tasks/" + testTask + "/progress", `{"message":"m"}`, typeJSON},
		"tickets":  {"GET", "/api/v1/tickets", "", ""},
		"ticket":   {"GET", "/api/v1/tickets/" + testTicket, "", ""},
		"close":    {"POST", "/api/v1/tickets/" + testTicket + "/close", "", ""},
		"agents":   {"GET", "/api/v1/agents", "", ""},
		"agent":    {"GET", "/api/v1/agents/quality_agent", "", ""},
		"registry": {"GET", "/api/v1/registry", "", ""},
		"validate": {"POST", "/api/v1/registry/validate", "clients: {}", "text/yaml"},
		"lint":     {"POST", "/api/v1/registry/lint", "clients: {}", "text/yaml"},
		"healthz":  {"GET", "/healthz", "", ""},
		"readyz":   {"GET", "/readyz", "", ""},
		"metrics":  {"GET", "/metrics", "", ""},
		"jwks":     {"GET", "/.well-known/jwks.json", "", ""},
		"openapi":  {"GET", "/openapi.json", "", ""},
	}
	public := []string{"healthz", "readyz", "metrics", "jwks", "openapi"}
	unknown := &contract.Error{Code: contract.CodeUnauthenticated, Message: "a token is needed"}
	cases := []struct {
		name    string
		auth    staticAuth
		refused int // the status of what is not in passes
		passes  []string
	}{
		{"unknown caller", staticAuth{err: unknown}, 401, public},
		{"no scopes", staticAuth{caller: &contract.Caller{}}, 403, public},
		{"route:submit", staticAuth{caller: &contract.Caller{Scopes: []string{"route:submit"}}}, 403, append([]string{"route", "classify", "cancel", "erase"}, public...)},
		{"route:read", staticAuth{caller: &contract.Caller{Scopes: []string{"route:read"}}}, 403, append([]string{"request", "events", "log"}, public...)},
		{"tickets", staticAuth{caller: &contract.Caller{Scopes: []string{"tickets"}}}, 403, append([]string{"tickets", "ticket", "close"}, public...)},
		// A task's own token is needed, whatever its bearer's scopes are elsewhere.
		{"tasks:work", staticAuth{caller: &contract.Caller{Scopes: []string{"tasks:work"}}}, 403, public},
		{"agents:read", staticAuth{caller: &contract.Caller{Scopes: []string{"agents:read"}, AllAgents: true}}, 403, append([]string{"agents", "agent", "registry", "validate", "lint"}, public...)},
		{"prefix of a scope", staticAuth{caller: &contract.Caller{Scopes: []string{"route", "agents:", "agents:read:x"}}}, 403, public},
	}
	for _, c := range cases {
		s := newServer(t, Config{Auth: c.auth}, &fakeCore{})
		for name, req := range requests {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				w := httptest.NewRecorder()
				r := localRequest(req.method, req.path, req.body)
				r.Header.Set("Content-Type", req.contentType)
				s.ServeHTTP(w, r)
				passed := w.Code != 401 && w.Code != 403
				refused := c.refused
				if name == "result" || name == "progress" {
					refused = 401
				}
				if want := slices.Contains(c.passes, name); passed != want || !passed && w.Code != refused {
					t.Errorf("got %d, want it to pass: %t", w.Code, want)
				}
				if challenge := w.Header().Get("Www-Authenticate"); (w.Code == 401 || w.Code == 403) != strings.HasPrefix(challenge, "Bearer") {
					t.Errorf("got %d with WWW-Authenticate %q", w.Code, challenge)
				}
			})
		}
	}
}
