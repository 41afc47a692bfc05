package rest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

func answeringWith(answer func(*contract.Request) *contract.Response) *fakeCore {
	return &fakeCore{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		return answer(req), nil
	}}
}

func TestStreamTellsWhatHappens(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeCore{})
	got := srv.post(t, "/api/v1/route", prompt, "Accept", httpserver.MediaTypeEvents)
	want := []string{"decision", "task.started", "task.progress", "task.done", "final"}
	events := testkit.ReadSSE(t, string(got.body))
	if diff := cmp.Diff(want, testkit.SSENames(events)); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{
		"Content-Type": httpserver.MediaTypeEvents, "Cache-Control": "no-store", "X-Accel-Buffering": "no",
		"X-Router-Agent": "quality_agent", "X-Router-Source": "lexical",
	} {
		if got := got.Header.Get(name); got != value {
			t.Errorf("got %s %q, want %q", name, got, value)
		}
	}
	var last contract.Event
	if err := json.Unmarshal([]byte(events[4].Data), &last); err != nil {
		t.Fatal(err)
	}
	if id := got.Header.Get("X-Request-Id"); last.RequestID != id || last.Response.RequestID != id || last.Response.Data.Answer != "All well." || last.At.IsZero() {
		t.Errorf("the last event is %s, want the answer to %s", events[4].Data, id)
	}
	for _, ev := range events {
		if ev.ID != "" {
			t.Errorf("%s has the id %s, but nobody can resume there", ev.Name, ev.ID)
		}
	}
}

// An answer that nothing led to is one event, and what a proxy would read in the
// headers of an answer is in those of the stream.
func TestStreamOfOneEvent(t *testing.T) {
	cases := []struct {
		name    string
		answer  func(*contract.Request) *contract.Response
		status  contract.Status
		headers map[string]string
	}{
		{"unsupported", unsupported, contract.StatusUnsupported, map[string]string{"X-Router-Fallback": "B"}},
		{"proposed", proposed, contract.StatusProposed, map[string]string{"X-Router-Fallback": "C"}},
		{"replayed", again(completed), contract.StatusCompleted, map[string]string{"Idempotency-Replayed": "true", "X-Router-Agent": "quality_agent"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := startServer(t, httpserver.Config{}, answeringWith(c.answer)).post(t, "/api/v1/route", prompt, "Accept", httpserver.MediaTypeEvents)
			events := testkit.ReadSSE(t, string(got.body))
			if len(events) != 1 || !strings.Contains(events[0].Data, `"status":"`+string(c.status)+`"`) {
				t.Fatalf("got %s, want one event with status %s", got.body, c.status)
			}
			for name, value := range c.headers {
				if got := got.Header.Get(name); got != value {
					t.Errorf("got %s %q, want %q", name, got, value)
				}
			}
		})
	}
}

func TestStreamThatFails(t *testing.T) {
	overloaded := &contract.Error{Code: contract.CodeOverloaded, Message: "m"}
	first := func(req *contract.Request, emit func(*contract.Event)) { emit(happened(completed(req))[0]) }
	type stream = func(ctx context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error)
	cases := []struct {
		name   string
		stream stream
		status int
		code   contract.Code
	}{
		{"at once", func(context.Context, *contract.Request, func(*contract.Event)) (*contract.Response, error) {
			return nil, overloaded
		}, 503, contract.CodeOverloaded},
		{"panic at once", func(context.Context, *contract.Request, func(*contract.Event)) (*contract.Response, error) {
			panic("a secret")
		}, 500, contract.CodeInternal},
		{"later", func(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
			first(req, emit)
			return nil, overloaded
		}, 200, contract.CodeOverloaded},
		{"later, with a secret", breaksOff, 200, contract.CodeInternal},
		{"panic later", func(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
			first(req, emit)
			panic("a secret")
		}, 200, contract.CodeInternal},
		{"answer that cannot be encoded", func(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
			first(req, emit)
			r := completed(req)
			r.Data.Results[0].Data = map[string]json.RawMessage{"a": json.RawMessage(`{"broken`)}
			return r, nil
		}, 200, contract.CodeInternal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log, core := &testkit.LogBuffer{}, &fakeCore{later: fakeLater{stream: c.stream}}
			srv := startServer(t, httpserver.Config{Logger: log.Logger()}, core)
			got := srv.post(t, "/api/v1/route", prompt, "Accept", httpserver.MediaTypeEvents)
			problem := got.body
			if c.status == 200 {
				events := testkit.ReadSSE(t, string(got.body))
				if diff := cmp.Diff([]string{"decision", httpserver.EventError}, testkit.SSENames(events)); diff != "" {
					t.Fatalf("events differ (-want +got):\n%s", diff)
				}
				problem = []byte(events[1].Data)
			}
			var p Problem
			if err := json.Unmarshal(problem, &p); err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != c.status || p.Code != c.code || p.RequestID != got.Header.Get("X-Request-Id") {
				t.Errorf("got %d %s, want %d and %s", got.StatusCode, problem, c.status, c.code)
			}
			if strings.Contains(string(got.body), "secret") {
				t.Errorf("internal text got out: %s", got.body)
			}
			if logged := strings.Contains(log.String(), `"level":"ERROR"`); logged != (c.code == contract.CodeInternal) {
				t.Errorf("got log %s", log)
			}
			if err := srv.stop(); err != nil { // waits for the accounts
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{string(c.code)}, core.outcomes.list()); diff != "" {
				t.Errorf("outcomes differ (-want +got):\n%s", diff)
			}
		})
	}
}
