package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// FuzzRouteBody: no body causes a server error, a rejected body gets a problem, and an accepted
// body is a valid request according to the document.
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
	core := &fakeBackend{}
	s := newServer(f, httpserver.Config{}, core)
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
		case w.Code != 200 && (w.Code != 202 || req.Options.Mode != contract.ModeAsync):
			t.Fatalf("got %d %s, want 200, or 202 for an asynchronous request", w.Code, w.Body)
		default:
			if e := req.Validate(); e != nil {
				t.Errorf("got an invalid request at the router: %v", e)
			}
			checkAllowed(t, doc, body)
		}
	})
}

// checkAllowed checks that an accepted body is valid according to the document.
func checkAllowed(t *testing.T, doc *openapi3.T, body []byte) {
	t.Helper()
	if strings.Contains(string(body), `"mode"`) {
		return // Go accepts "" for an absent mode, the document does not
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("got an accepted body that is not JSON: %v", err)
	}
	if err := doc.Components.Schemas["Request"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("got an accepted body that is not a Request of the document: %v", err)
	}
}

// FuzzHeaders: no header value causes a server error.
func FuzzHeaders(f *testing.F) {
	f.Add("application/json", "*/*", "respond-async", "00-"+goodTrace+"-"+goodParent+"-01", "localhost:8080", "gzip", "k")
	f.Add("application/json", "text/event-stream, */*;q=0.999", "", "", "localhost", "", " ~")
	f.Add(`application/json; charset="utf-8"`, "text/event-stream;q=0", "a=b;c, d", "ff-", "[::1]", "identity", "\x00")
	f.Add(";", ",;=,", "=", "", "[", "", "")
	core := &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		return completedResponse(req), nil
	}}
	s := newServer(f, httpserver.Config{}, core)
	f.Fuzz(func(t *testing.T, contentType, accept, prefer, traceparent, host, encoding, key string) {
		r := localRequest("POST", "/api/v1/route", prompt)
		r.Host = host
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", accept)
		r.Header.Set("Prefer", prefer)
		r.Header.Set("Traceparent", traceparent)
		r.Header.Set("Content-Encoding", encoding)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		switch w.Code {
		case 200, 202, 403, 415, 422:
		default:
			t.Fatalf("got %d %s, want 200, 202, 403, 415 or 422", w.Code, w.Body)
		}
		if ct := w.Header().Get("Content-Type"); ct == httpserver.MediaTypeEvents && !strings.Contains(strings.ToLower(accept), httpserver.MediaTypeEvents) {
			t.Errorf("got events for Accept: %q", accept)
		}
	})
}

// FuzzResume: a Last-Event-ID reaches the router unchanged, or is rejected.
func FuzzResume(f *testing.F) {
	for _, seed := range []string{"", "0", "7", "+7", "-1", "0x7", "1_0", "18446744073709551615", "18446744073709551616", "7 ", "\u0667", "é", "1e3", "00000000000000000000007"} {
		f.Add(seed, "")
		f.Add("", "after="+seed)
	}
	f.Add("3", "after=4&after=5")
	f.Add("3", "before=4")
	f.Add("", "after=%zz;")
	var asked *uint64
	core := &fakeBackend{later: fakeLater{events: func(_ context.Context, after uint64, emit func(uint64, *contract.Event) error) error {
		asked = &after
		return emit(after+1, finalEvent(storedResponse(testRequest)))
	}}}
	s := newServer(f, httpserver.Config{}, core)
	f.Fuzz(func(t *testing.T, header, query string) {
		asked = nil
		r := localRequest("GET", "/api/v1/requests/"+testRequest+"/events", "")
		r.URL.RawQuery = query
		r.Header.Set("Last-Event-ID", header)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		switch {
		case w.Code == 422 && asked == nil:
		case w.Code == 204 && asked == nil && strings.Contains(header+query, strconv.FormatUint(maxEventID, 10)):
		case w.Code != 200 || asked == nil:
			t.Fatalf("got %d %s, want 200 or 422", w.Code, w.Body)
		case header != "":
			if want := strings.TrimLeft(header, "0"); strconv.FormatUint(*asked, 10) != cmp.Or(want, "0") {
				t.Errorf("got %d for Last-Event-ID %q", *asked, header)
			}
		}
	})
}
