package httpapi

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caprouter/caprouter/contract"
)

// No body is ever a server error, what is refused says so as a problem, and what
// the core gets is a valid request that the document allows.
func FuzzRouteBody(f *testing.F) {
	for _, seed := range []string{
		prompt,
		`{"content":{"prompt":"p","inputs":{"a":null,"A":[1,{"b":2}]}},"history":[{"role":"user","content":"c"}]}`,
		`{"content":{"prompt":"p"},"agent_id":null,"clarification":null,"options":{"fallback":null,"mode":"sync","timeout_ms":1,"dry_run":true}}`,
		`{"content":{"prompt":"p"},"metadata":{"locale":"pt-BR"},"session_id":"s","agent_id":"quality_agent"}`,
		`{"content":{"prompt":"p"},"clarification":{"request_id":"r","option_id":"o"},"options":{"mode":"async"}}`,
		`{"content":{"prompt":"p"},"session_id":"s","clarification":{"request_id":"01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90","option_id":"1"},"options":{"fallback":"A"}}`,
		`{"content":{"prompt":"\u0000\ud83d\ude00\\"}}`,
		`{"content":{"prompt":"p","prompt":"q"}}`,
		`{"CONTENT":{"prompt":"p"}}`,
		`{"content":{"prompt":"p"}}{}`,
		"\ufeff{}", `null`, `[]`, `""`, `0`, ``, `{`, "\xff",
		`{"content":{"prompt":"p"},"options":{"timeout_ms":1e400}}`,
		strings.Repeat(`{"content":`, 300),
	} {
		f.Add([]byte(seed))
	}
	doc, err := servedSpec()
	if err != nil {
		f.Fatal(err)
	}
	core := &fakeCore{}
	s := newServer(f, Config{}, core)
	f.Fuzz(func(t *testing.T, body []byte) {
		core.got = nil
		w := httptest.NewRecorder()
		s.ServeHTTP(w, localRequest("POST", "/api/v1/route", string(body)))
		switch req := core.last(); {
		case req == nil:
			if w.Code != 400 && w.Code != 413 && w.Code != 422 {
				t.Fatalf("got %d %s, want 400, 413 or 422", w.Code, w.Body)
			}
			var p Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Detail == "" {
				t.Fatalf("got %s (%v), want a problem", w.Body, err)
			}
		case w.Code != 200:
			t.Fatalf("got %d %s, want 200", w.Code, w.Body)
		default:
			if e := req.Validate(); e != nil {
				t.Errorf("the core got a request that is not valid: %v", e)
			}
			allowed(t, doc, body)
		}
	})
}

// allowed checks that the document allows a body that was taken.
func allowed(t *testing.T, doc *openapi3.T, body []byte) {
	t.Helper()
	if strings.Contains(string(body), `"mode"`) {
		return // Go takes "" for an absent mode, the document does not
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("what was taken is no JSON: %v", err)
	}
	if err := doc.Components.Schemas["Request"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("what was taken is no Request by the document: %v", err)
	}
}

// Headers are outside bytes too: whatever they hold, a request is served or
// refused, never broken.
func FuzzHeaders(f *testing.F) {
	f.Add("application/json", "*/*", "respond-async", "00-"+goodTrace+"-"+goodParent+"-01", "localhost:8080", "gzip")
	f.Add(`application/json; charset="utf-8"`, "text/event-stream;q=0", "a=b;c, d", "ff-", "[::1]", "identity")
	f.Add(";", ",;=,", "=", "", "[", "")
	core := &fakeCore{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		return completed(req), nil
	}}
	s := newServer(f, Config{}, core)
	f.Fuzz(func(t *testing.T, contentType, accept, prefer, traceparent, host, encoding string) {
		r := localRequest("POST", "/api/v1/route", prompt)
		r.Host = host
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", accept)
		r.Header.Set("Prefer", prefer)
		r.Header.Set("Traceparent", traceparent)
		r.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		switch w.Code {
		case 200, 403, 415, 422:
		default:
			t.Fatalf("got %d %s, want 200, 403, 415 or 422", w.Code, w.Body)
		}
	})
}
