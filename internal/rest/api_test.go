package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestNew_NamesMissingDependencies(t *testing.T) {
	_, err := New(Config{}, Deps{})
	for _, field := range []string{"Router", "Leases", "Tickets", "Fleet", "Tools", "MCPServers", "MCPRegistrations", "MCPApprovals", "MCPBindings", "Runs", "RunLister", "RunControl", "RunEraser", "TaskTokens", "Registry", "AgentState", "Readiness", "JWKS", "Requests", "Decisions", "AuditLog", "Tasks", "Metrics", "Meter"} {
		if err == nil || !strings.Contains(err.Error(), "Deps."+field) {
			t.Errorf("got error %v, want %s in it", err, field)
		}
	}
}

func TestAPI_EveryResponseHasID(t *testing.T) {
	core := &fakeBackend{}
	srv := startServer(t, httpserver.Config{}, core)
	seen := map[string]bool{}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/v1/route", prompt},
		{"POST", "/api/v1/route", `{`},
		{"GET", "/nowhere", ""},
		{"PATCH", "/healthz", ""},
		{"GET", "/healthz", ""},
		{"OPTIONS", "/api/v1/route", ""},
		{"OPTIONS", "/nowhere", ""},
	} {
		got := srv.do(t, c.method, c.path, c.body,
			"Content-Type", "application/json", "X-Request-Id", "01980c1a-7c00-7a3e-9d41-ffffffffffff")
		ids := got.Header["X-Request-Id"]
		if len(ids) != 1 || seen[ids[0]] || !strings.HasPrefix(ids[0], "01980c1a") || strings.HasSuffix(ids[0], "ffffffffffff") {
			t.Errorf("%s %s: got X-Request-Id %q, want one new id of the server", c.method, c.path, ids)
			continue
		}
		seen[ids[0]] = true
		if nosniff := got.Header.Get("X-Content-Type-Options"); nosniff != "nosniff" {
			t.Errorf("%s %s: got X-Content-Type-Options %q", c.method, c.path, nosniff)
		}
	}
	if got := core.last(); got == nil || !seen[got.RequestID] {
		t.Errorf("got request %+v, want the id of the response", got)
	}
}

func TestHandleRoute_SetsDecisionHeaders(t *testing.T) {
	core := &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		switch req.SessionID {
		case "two":
			r := completedResponse(req)
			r.Decision.Chosen = []string{"quality_agent", "billing_agent"}
			return r, nil
		case "none":
			return unsupportedResponse(req), nil
		case "model":
			return answeredByModel(req), nil
		case "cache":
			return completedAfter(classifiedBy(contract.SourceCache, testModelUse()))(req), nil
		case "ask":
			return undecidedResponse(req), nil
		}
		r := completedResponse(req)
		r.Decision = nil
		return r, nil
	}}
	srv := startServer(t, httpserver.Config{}, core)
	cases := []struct {
		session string
		want    map[string]string
	}{
		{"two", map[string]string{
			"X-Router-Decision-Id": "01980c1a-7c0a-7b11-8c22-90aa11bb22cc",
			"X-Router-Agent":       "quality_agent,billing_agent", "X-Router-Source": "lexical",
		}},
		{"none", map[string]string{
			"X-Router-Decision-Id": "01980c1a-7c0a-7b11-8c22-90aa11bb22cc",
			"X-Router-Source":      "lexical", "X-Router-Fallback": "B",
		}},
		{"model", map[string]string{
			"X-Router-Decision-Id": "01980c1a-7c0a-7b11-8c22-90aa11bb22cc",
			"X-Router-Source":      "llm", "X-Router-Fallback": "A",
		}},
		{"cache", map[string]string{
			"X-Router-Decision-Id": "01980c1a-7c0a-7b11-8c22-90aa11bb22cc",
			"X-Router-Agent":       "quality_agent", "X-Router-Source": "cache",
		}},
		{"ask", map[string]string{
			"X-Router-Decision-Id": "01980c1a-7c0a-7b11-8c22-90aa11bb22cc",
			"X-Router-Source":      "lexical",
		}},
		{"no decision", map[string]string{}},
	}
	for _, c := range cases {
		t.Run(c.session, func(t *testing.T) {
			got := srv.post(t, "/api/v1/route", `{"content":{"prompt":"p"},"session_id":"`+c.session+`"}`)
			found := map[string]string{}
			for name := range got.Header {
				if strings.HasPrefix(name, "X-Router-") {
					found[name] = got.Header.Get(name)
				}
			}
			if diff := cmp.Diff(c.want, found); diff != "" {
				t.Errorf("headers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandleRoute_UnsupportedIsProblem(t *testing.T) {
	core := &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		return unsupportedResponse(req), nil
	}}
	srv := startServer(t, httpserver.Config{}, core)
	got := srv.post(t, "/api/v1/route", prompt)
	var p UnsupportedProblem
	if err := json.Unmarshal(got.body, &p); err != nil {
		t.Fatal(err)
	}
	if p.Status != 422 || p.Code != contract.CodeNoEligibleAgent || p.Outcome != contract.StatusUnsupported ||
		p.Detail != "no agent declares this" || p.Decision == nil || p.Data.Mode != contract.DataUnsupported {
		t.Errorf("got %s", got.body)
	}
	dry := srv.post(t, "/api/v1/route", `{"content":{"prompt":"p"},"options":{"dry_run":true}}`)
	if dry.StatusCode != http.StatusOK || dry.Header.Get("Content-Type") != httpserver.MediaTypeJSON {
		t.Errorf("dry run: got %d %s, want 200 and JSON", dry.StatusCode, dry.Header.Get("Content-Type"))
	}
}

func TestAPI_PathsAndMethods(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	cases := []struct {
		method, path string
		status       int
		allow        []string
	}{
		{"GET", "/", 404, nil},
		{"GET", "/api/v1/route/", 404, nil},
		{"GET", "//api/v1/agents", 404, nil},
		{"GET", "/API/V1/agents", 404, nil},
		{"GET", "/api/v1/agents/", 404, nil},
		{"GET", "/api/v1/agents/quality_agent/x", 404, nil},
		{"GET", "/api/v1/agents/..%2fregistry", 404, nil},
		{"GET", "/api/v1/agents/quality%5Fagent%00", 404, nil},
		{"GET", "/api/v1/route", 405, []string{"OPTIONS", "POST"}},
		{"HEAD", "/api/v1/route", 405, []string{"OPTIONS", "POST"}},
		{"POST", "/api/v1/agents/quality_agent", 405, []string{"DELETE", "GET", "HEAD", "OPTIONS", "PUT"}},
		{"TRACE", "/healthz", 405, []string{"GET", "HEAD", "OPTIONS"}},
		{"BREW", "/healthz", 405, []string{"GET", "HEAD", "OPTIONS"}},
		{"OPTIONS", "/api/v1/agents", 204, []string{"GET", "HEAD", "OPTIONS"}},
		{"OPTIONS", "/api/v1/classify", 204, []string{"OPTIONS", "POST"}},
		{"OPTIONS", "/nowhere", 404, nil},
		{"HEAD", "/api/v1/agents", 200, nil},
		{"HEAD", "/readyz", 200, nil},
		{"HEAD", "/openapi.json", 200, nil},
	}
	for _, c := range cases {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			got := srv.do(t, c.method, c.path, "")
			if got.StatusCode != c.status {
				t.Errorf("got %d, want %d", got.StatusCode, c.status)
			}
			var allow []string
			if value := got.Header.Get("Allow"); value != "" {
				allow = slices.Sorted(strings.SplitSeq(value, ", "))
			}
			if diff := cmp.Diff(c.allow, allow); diff != "" {
				t.Errorf("Allow differs (-want +got):\n%s", diff)
			}
			if c.status == http.StatusMethodNotAllowed && c.method != "HEAD" {
				var p Problem
				if err := json.Unmarshal(got.body, &p); err != nil {
					t.Fatal(err)
				}
				want := "the methods of this path are " + got.Header.Get("Allow")
				if diff := cmp.Diff(want, p.Detail); diff != "" {
					t.Errorf("detail (-want +got):\n%s", diff)
				}
			}
			if c.method == "HEAD" && (len(got.body) != 0 || got.ContentLength <= 0) {
				t.Errorf("got %d bytes of body and Content-Length %d, want none and the length of GET's", len(got.body), got.ContentLength)
			}
		})
	}
}

// internalDetail is the detail of every internal error.
const internalDetail = "internal error; the server log has the cause under this request_id"

func TestAPI_MapsErrors(t *testing.T) {
	cases := []struct {
		name   string
		err    error
		status int
		code   contract.Code
		detail string
	}{
		{"known", &contract.Error{Code: contract.CodeConflict, Message: "m"}, 409, contract.CodeConflict, "m"},
		{"wrapped", fmt.Errorf("secret: %w", &contract.Error{Code: contract.CodeNotFound, Message: "m"}), 404, contract.CodeNotFound, "m"},
		{"unknown", errors.New("secret"), 500, contract.CodeInternal, internalDetail},
		{"unknown code", &contract.Error{Code: "odd", Message: "secret"}, 500, contract.CodeInternal, internalDetail},
		{"rate", &contract.Error{Code: contract.CodeRateLimited, Message: "m"}, 429, contract.CodeRateLimited, "m"},
		{"audit log unavailable", &contract.Error{Code: contract.CodeAuditUnavailable, Message: "m"}, 503, contract.CodeAuditUnavailable, "m"},
		{"deadline of the handler", context.DeadlineExceeded, 500, contract.CodeInternal, internalDetail},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log := &testkit.LogBuffer{}
			core := &fakeBackend{handle: func(context.Context, *contract.Request, *contract.Caller) (*contract.Response, error) {
				return nil, c.err
			}}
			s := newServer(t, httpserver.Config{Logger: log.Logger()}, core)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, localRequest(http.MethodPost, "/api/v1/route", prompt))
			var p Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.status || p.Code != c.code || p.Detail != c.detail || p.Type != problemBase+string(c.code) {
				t.Errorf("got %d %+v, want %d %s %q", w.Code, p, c.status, c.code, c.detail)
			}
			if got, want := w.Header().Get("Retry-After"), map[int]string{429: "1", 503: "5"}[c.status]; got != want {
				t.Errorf("got Retry-After %q, want %q", got, want)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("got internal text in the response: %s", w.Body)
			}
			if logged := strings.Contains(log.String(), `"level":"ERROR"`); logged != (c.code == contract.CodeInternal) {
				t.Errorf("got log %s", log)
			}
		})
	}
}

// A response that cannot be encoded becomes an internal error, not an incomplete response.
func TestHandleRoute_ReportsUnencodableResponse(t *testing.T) {
	core := &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		r := completedResponse(req)
		r.Data.Results[0].Data = map[string]json.RawMessage{"a": json.RawMessage(`{"broken`)}
		return r, nil
	}}
	srv := startServer(t, httpserver.Config{}, core)
	if got := srv.post(t, "/api/v1/route", prompt); got.StatusCode != http.StatusInternalServerError {
		t.Errorf("got %d %s, want 500", got.StatusCode, got.body)
	}
}

func TestAPI_MeterCountsRoutingErrors(t *testing.T) {
	core := &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		if req.SessionID == "panic" {
			panic("no")
		}
		return unsupportedResponse(req), nil
	}}
	s := newServer(t, httpserver.Config{}, core)
	for _, r := range []*http.Request{
		localRequest("POST", "/api/v1/route", prompt), // counted by the router
		localRequest("POST", "/api/v1/route", `{`),
		localRequest("POST", "/api/v1/route", `{"content":{"prompt":"p"},"session_id":"panic"}`),
		localRequest("POST", "/api/v1/classify", `{`),
		localRequest("GET", "/api/v1/route", ""),
		localRequest("GET", "/nowhere", ""),
	} {
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	if diff := cmp.Diff([]string{"invalid_request", "internal"}, core.outcomes.list()); diff != "" {
		t.Errorf("outcomes differ (-want +got):\n%s", diff)
	}
}
