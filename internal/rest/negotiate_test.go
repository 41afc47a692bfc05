package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestPrefersEventStream(t *testing.T) {
	cases := []struct {
		name   string
		accept []string
		want   bool
	}{
		{"nothing", nil, false},
		{"empty", []string{""}, false},
		{"anything", []string{"*/*"}, false},
		{"JSON", []string{"application/json"}, false},
		{"HTML", []string{"text/html"}, false},
		{"events", []string{"text/event-stream"}, true},
		{"events in another case", []string{"Text/Event-Stream"}, true},
		{"events, JSON excluded", []string{"text/event-stream, application/json;q=0.0, */*; q=0"}, true},
		{"both", []string{"application/json, text/event-stream"}, false},
		{"both, reverse order", []string{"text/event-stream, application/json"}, false},
		{"events before JSON", []string{"text/event-stream, application/json;q=0.9"}, true},
		{"JSON before events", []string{"text/event-stream;q=0.9, application/json"}, false},
		{"difference of a thousandth", []string{"text/event-stream;q=0.501, application/json;q=0.5"}, true},
		{"events or anything", []string{"text/event-stream", "*/*;q=0.1"}, true},
		{"exact range", []string{"text/event-stream;q=0.5, */*;q=0.1, application/*;q=0.8, application/json;q=0.2"}, true},
		{"more specific range", []string{"text/event-stream;q=0.5, */*;q=0.1, application/*;q=0.8"}, false},
		{"events excluded", []string{"text/event-stream;q=0"}, false},
		{"invalid weight", []string{"text/event-stream;q=high, application/json;q=0.5"}, true},
		{"another parameter", []string{"text/event-stream;charset=utf-8;Q=0.1, application/json;q=0.5"}, false},
		{"similar type", []string{"text/event-streams"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := prefersEventStream(c.accept); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestParseWeight(t *testing.T) {
	cases := map[string]int{
		"": 1000, ";": 1000, "a=b": 1000, "q=1": 1000, "q=1.000": 1000, "q=0": 0, "q=0.": 0, "q=0.5": 500, "q=0.05": 50, "q=0.005": 5,
		"a=b; Q=0.25 ; c=d": 250, "q=0.0005": 1000, "q=-0.5": 1000, "q=.5": 1000, "q=0.5x": 1000, "q=NaN": 1000, "q=2": 1000, "q": 1000,
	}
	for params, want := range cases {
		if got := parseWeight(params); got != want {
			t.Errorf("parseWeight(%q): got %d, want %d", params, got, want)
		}
	}
}

// The body and the headers decide whether the request is synchronous.
func TestHandleRoute_ChoosesMode(t *testing.T) {
	const dry = `{"content":{"prompt":"p"},"options":{"dry_run":true}}`
	body := func(options string) string { return `{"content":{"prompt":"p"},"options":{` + options + `}}` }
	cases := []struct {
		name, body string
		headers    []string
		status     int
		applied    string
	}{
		{"default", prompt, nil, 200, ""},
		{"sync", body(`"mode":"sync"`), nil, 200, ""},
		{"async", body(`"mode":"async"`), nil, 202, ""},
		{"async for a day", body(`"mode":"async","timeout_ms":86400000`), nil, 202, ""},
		{"preferred", prompt, []string{"Prefer", "respond-async"}, 202, "respond-async"},
		{"preferred, timeout of a day", body(`"timeout_ms":86400000`), []string{"Prefer", "respond-async"}, 202, "respond-async"},
		{"preferred among others", prompt, []string{"Prefer", "return=minimal, Respond-Async; foo=bar, wait=10"}, 202, "respond-async"},
		{"preferred in a second header", prompt, []string{"Prefer", "wait=10", "Prefer", "respond-async"}, 202, "respond-async"},
		{"in the body and preferred", body(`"mode":"async"`), []string{"Prefer", "respond-async"}, 202, "respond-async"},
		{"preferred, but the body has sync", body(`"mode":"sync"`), []string{"Prefer", "respond-async"}, 200, ""},
		{"preferred for a dry run", dry, []string{"Prefer", "respond-async"}, 200, ""},
		{"preferred with an empty value", prompt, []string{"Prefer", `respond-async=""`}, 202, "respond-async"},
		{"preferred with true", prompt, []string{"Prefer", "respond-async=true"}, 202, "respond-async"},
		{"refused", prompt, []string{"Prefer", "respond-async=false"}, 200, ""},
		{"rejected with blanks", prompt, []string{"Prefer", `respond-async = "no"; a=b`}, 200, ""},
		{"another preference", prompt, []string{"Prefer", "wait=10"}, 200, ""},
		{"similar preference", prompt, []string{"Prefer", "respond-asynchronously"}, 200, ""},
		{"async and events", body(`"mode":"async"`), []string{"Accept", httpserver.MediaTypeEvents}, 202, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core := &fakeBackend{}
			srv := startServer(t, httpserver.Config{}, core)
			got := srv.post(t, "/api/v1/route", c.body, c.headers...)
			if got.StatusCode != c.status {
				t.Fatalf("got %d %s, want %d", got.StatusCode, got.body, c.status)
			}
			if async := core.last().Options.Mode == contract.ModeAsync; async != (c.status == 202) {
				t.Errorf("got mode %q at the router", core.last().Options.Mode)
			}
			if got := got.Header.Get("Preference-Applied"); got != c.applied {
				t.Errorf("got Preference-Applied %q, want %q", got, c.applied)
			}
			want := ""
			if c.status == 202 {
				want = "/api/v1/requests/" + core.last().RequestID
			}
			if got := got.Header.Get("Location"); got != want {
				t.Errorf("got Location %q, want %q", got, want)
			}
		})
	}
}

// A classification is synchronous and has no effect, so the headers do not apply.
func TestHandleClassify_IgnoresHeaders(t *testing.T) {
	core := &fakeBackend{}
	srv := startServer(t, httpserver.Config{}, core)
	got := srv.post(t, "/api/v1/classify", prompt, "Prefer", "respond-async", "Idempotency-Key", "", "Accept", httpserver.MediaTypeEvents)
	if req := core.last(); got.StatusCode != http.StatusOK || req.Options.Mode != "" || req.Idempotency != nil {
		t.Errorf("got %d and request %+v, want 200 and no values of the headers", got.StatusCode, req)
	}
}

func TestHandleRoute_IdempotencyKeys(t *testing.T) {
	core := &fakeBackend{}
	s := newServer(t, httpserver.Config{}, core)
	cases := []struct {
		name string
		keys []string
		ok   bool
	}{
		{"UUID", []string{"7f9c24e8-3b12-4f0a-9d61-a4a2b1c3d5e6"}, true},
		{"quoted", []string{`"k 1"`}, true},
		{"one", []string{"k"}, true},
		{"255", []string{strings.Repeat("k", 255)}, true},
		{"256", []string{strings.Repeat("k", 256)}, false},
		{"empty", []string{""}, false},
		{"two", []string{"k", "k"}, false},
		{"tab", []string{"a\tb"}, false},
		{"not ASCII", []string{"chave-é"}, false},
		{"DEL", []string{"k\x7f"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core.got = nil
			r := localRequest(http.MethodPost, "/api/v1/route", prompt)
			r.Header["Idempotency-Key"] = c.keys
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			req := core.last()
			if !c.ok {
				if w.Code != 422 || req != nil || !strings.Contains(w.Body.String(), "header Idempotency-Key") {
					t.Errorf("got %d %s, want 422 with the name of the header", w.Code, w.Body)
				}
				return
			}
			if w.Code != 200 || req.Idempotency == nil || req.Idempotency.Key != c.keys[0] {
				t.Errorf("got %d, and request %+v", w.Code, req)
			}
		})
	}
	core.got = nil
	s.ServeHTTP(httptest.NewRecorder(), localRequest(http.MethodPost, "/api/v1/route", prompt))
	if got := core.last().Idempotency; got != nil {
		t.Errorf("without a key got %+v", got)
	}
}

// Two requests have the same hash only if they are equal.
func TestHashRequest_DistinguishesRequests(t *testing.T) {
	core := &fakeBackend{}
	s := newServer(t, httpserver.Config{}, core)
	of := func(body string, headers ...string) [32]byte {
		r := localRequest(http.MethodPost, "/api/v1/route", body)
		r.Header.Set("Idempotency-Key", "k")
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 300 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		return core.last().Idempotency.Body
	}
	same := of(prompt)
	if of(prompt) != same || of(prompt, "Accept", httpserver.MediaTypeEvents) != same || of(prompt, "Traceparent", "x") != same {
		t.Error("got another hash for the same request")
	}
	if of(prompt+" ") == same || of(strings.Replace(prompt, "Please", "please", 1)) == same {
		t.Error("got the same hash for another body")
	}
	if of(prompt, "Prefer", "respond-async") == same {
		t.Error("got the same hash for an asynchronous and a synchronous request")
	}
	if hashRequest("/a", false, []byte("b")) == hashRequest("/ab", false, nil) {
		t.Error("got the same hash for another boundary between path and body")
	}
}

func TestHandleRoute_ReplayedResponses(t *testing.T) {
	for name, answer := range map[string]func(*contract.Request) *contract.Response{"completed": completedResponse, "unsupported": unsupportedResponse} {
		for _, replayed := range []bool{false, true} {
			core := answeringWith(answer)
			if replayed {
				core = answeringWith(replayedOf(answer))
			}
			got := startServer(t, httpserver.Config{}, core).post(t, "/api/v1/route", prompt, "Idempotency-Key", "k")
			if header := got.Header.Get("Idempotency-Replayed"); (header == "true") != replayed || header != "" != replayed {
				t.Errorf("%s: got Idempotency-Replayed %q, want replayed %t", name, header, replayed)
			}
			// The stored request has the id of the first request.
			if replayed && !strings.Contains(string(got.body), `"request_id":"`+testRequest) {
				t.Errorf("%s: got %s, want the first request's id", name, got.body)
			}
		}
	}
}

// Another process completes the request.
func TestHandleRoute_AcceptsRequestOfOtherProcess(t *testing.T) {
	core := answeringWith(func(req *contract.Request) *contract.Response {
		return &contract.Response{RequestID: req.RequestID, TraceID: goodTrace, Status: contract.StatusRunning, Decision: testDecision(), Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}}
	})
	server := startServer(t, httpserver.Config{}, core)
	got := server.post(t, "/api/v1/route", prompt)
	if want := "/api/v1/requests/" + got.Header.Get("X-Request-Id"); got.StatusCode != http.StatusAccepted || got.Header.Get("Location") != want {
		t.Errorf("got %d with Location %q, want 202 with %q", got.StatusCode, got.Header.Get("Location"), want)
	}
	stream := server.post(t, "/api/v1/route", prompt, "Accept", httpserver.MediaTypeEvents)
	if events := testkit.ReadSSE(t, string(stream.body)); len(events) != 1 || !strings.Contains(events[0].Data, `"status":"running"`) {
		t.Errorf("got %s, want the state", stream.body)
	}
}

func TestHandleRoute_PassesTraceID(t *testing.T) {
	parent := "00-" + goodTrace + "-" + goodParent + "-01"
	cases := []struct {
		name    string
		headers []string
		kept    bool
	}{
		{"one", []string{parent}, true},
		{"none", nil, false},
		{"broken", []string{"00-x"}, false},
		{"two", []string{parent, parent}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core := &fakeBackend{}
			s := newServer(t, httpserver.Config{}, core)
			r := localRequest(http.MethodPost, "/api/v1/route", prompt)
			r.Header["Traceparent"] = c.headers
			s.ServeHTTP(httptest.NewRecorder(), r)
			want := ""
			if c.kept {
				want = goodTrace
			}
			if got := core.last().TraceID; got != want {
				t.Errorf("got trace id %q, want %q", got, want)
			}
		})
	}
}
