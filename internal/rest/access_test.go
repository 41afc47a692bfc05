package rest

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// staticAuth returns the same caller or error for every token.
type staticAuth struct {
	caller *contract.Caller
	err    error
}

func (a staticAuth) Verify(context.Context, string) (*contract.Caller, error) { return a.caller, a.err }

func TestAPI_Scopes(t *testing.T) {
	requests := map[string]struct{ method, path, body, contentType string }{
		"route":    {"POST", "/api/v1/route", prompt, httpserver.MediaTypeJSON},
		"classify": {"POST", "/api/v1/classify", prompt, httpserver.MediaTypeJSON},
		"request":  {"GET", "/api/v1/requests/" + testRequest, "", ""},
		"events":   {"GET", "/api/v1/requests/" + testRequest + "/events", "", ""},
		"cancel":   {"POST", "/api/v1/requests/" + testRequest + "/cancel", "", ""},
		"erase":    {"DELETE", "/api/v1/requests/" + testRequest, "", ""},
		"run":      {"GET", "/api/v1/orchestrations/done", "", ""},
		"eraserun": {"DELETE", "/api/v1/orchestrations/done", "", ""},
		"feedback": {"POST", feedbackPath, `{"verdict":"correct"}`, httpserver.MediaTypeJSON},
		"log":      {"GET", "/api/v1/decisions", "", ""},
		"audit":    {"GET", "/api/v1/audit", "", ""},
		"result":   {"POST", "/api/v1/tasks/" + testTask + "/result", `{"status":"success"}`, httpserver.MediaTypeJSON},
		"progress": {"POST", "/api/v1/tasks/" + testTask + "/progress", `{"message":"m"}`, httpserver.MediaTypeJSON},
		"tickets":  {"GET", "/api/v1/tickets", "", ""},
		"ticket":   {"GET", "/api/v1/tickets/" + testTicket, "", ""},
		"close":    {"POST", "/api/v1/tickets/" + testTicket + "/close", "", ""},
		"agents":   {"GET", "/api/v1/agents", "", ""},
		"agent":    {"GET", "/api/v1/agents/quality_agent", "", ""},
		"registry": {"GET", "/api/v1/registry", "", ""},
		"register": {
			"PUT", "/api/v1/agents/word_counter",
			`{"match":{"intent":["x"],"domains":[]},"endpoint":{"protocol":"http","url":"http://127.0.0.1:1/"}}`, httpserver.MediaTypeJSON,
		},
		"pull":      {"POST", "/api/v1/agents/word_counter/lease", "", ""},
		"heartbeat": {"POST", "/api/v1/agents/word_counter/heartbeat", "", ""},
		"drain":     {"POST", "/api/v1/agents/word_counter/drain", "", ""},
		"leave":     {"DELETE", "/api/v1/agents/word_counter", "", ""},
		"disable":   {"POST", "/api/v1/agents/word_counter/disable", "", ""},
		"enable":    {"POST", "/api/v1/agents/word_counter/enable", "", ""},
		"validate":  {"POST", "/api/v1/registry/validate", "clients: {}", "text/yaml"},
		"lint":      {"POST", "/api/v1/registry/lint", "clients: {}", "text/yaml"},
		"diff":      {"POST", "/api/v1/registry/diff", "clients: {}", "text/yaml"},
		"healthz":   {"GET", "/healthz", "", ""},
		"readyz":    {"GET", "/readyz", "", ""},
		"metrics":   {"GET", "/metrics", "", ""},
		"jwks":      {"GET", "/.well-known/jwks.json", "", ""},
		"openapi":   {"GET", "/openapi.json", "", ""},
	}
	public := []string{"healthz", "readyz", "metrics", "jwks", "openapi"}
	unknown := &contract.Error{Code: contract.CodeUnauthenticated, Message: "a token is needed"}
	cases := []struct {
		name    string
		auth    staticAuth
		refused int // status of the requests that are not in passes
		passes  []string
	}{
		{"unknown caller", staticAuth{err: unknown}, 401, public},
		{"no scopes", staticAuth{caller: &contract.Caller{}}, 403, public},
		{"route:submit", staticAuth{caller: &contract.Caller{Scopes: []string{"route:submit"}}}, 403, append([]string{"route", "classify", "cancel", "erase", "eraserun", "feedback"}, public...)},
		{"orchestrate", staticAuth{caller: &contract.Caller{Scopes: []string{"orchestrate"}}}, 403, append([]string{"run", "eraserun"}, public...)},
		{"orchestrate:approve", staticAuth{caller: &contract.Caller{Scopes: []string{"orchestrate:approve"}}}, 403, append([]string{"run"}, public...)},
		{"route:read", staticAuth{caller: &contract.Caller{Scopes: []string{"route:read"}}}, 403, append([]string{"request", "events", "log", "audit", "diff"}, public...)},
		{"tickets", staticAuth{caller: &contract.Caller{Scopes: []string{"tickets"}}}, 403, append([]string{"tickets", "ticket", "close"}, public...)},
		// Task routes require the token of the task, for any scopes of the caller.
		{"tasks:work", staticAuth{caller: &contract.Caller{Scopes: []string{"tasks:work"}}}, 403, append([]string{"pull"}, public...)},
		{"agents:read", staticAuth{caller: &contract.Caller{Scopes: []string{"agents:read"}, AllAgents: true}}, 403, append([]string{"agents", "agent", "registry", "validate", "lint"}, public...)},
		{"agents:register", staticAuth{caller: &contract.Caller{Scopes: []string{"agents:register"}}}, 403, append([]string{"register", "heartbeat", "drain", "leave"}, public...)},
		{"admin", staticAuth{caller: &contract.Caller{Scopes: []string{"admin"}}}, 403, append([]string{
			"register", "heartbeat", "drain", "leave", "disable", "enable",
			"request", "events", "run", "log", "audit", "diff", "tickets", "ticket", "agents", "agent", "registry", // reading
		}, public...)},
		{"prefix of a scope", staticAuth{caller: &contract.Caller{Scopes: []string{"route", "agents:", "agents:read:x"}}}, 403, public},
	}
	for _, c := range cases {
		s := newServer(t, httpserver.Config{Auth: c.auth}, &fakeBackend{})
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
					t.Errorf("got %d, want accepted %t", w.Code, want)
				}
				if challenge := w.Header().Get("Www-Authenticate"); (w.Code == 401 || w.Code == 403) != strings.HasPrefix(challenge, "Bearer") {
					t.Errorf("got %d with WWW-Authenticate %q", w.Code, challenge)
				}
			})
		}
	}
}
