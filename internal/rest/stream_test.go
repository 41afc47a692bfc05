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

func answeringWith(answer func(*contract.Request) *contract.Response) *fakeBackend {
	return &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		return answer(req), nil
	}}
}

func TestHandleRoute_StreamsProgress(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
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
		t.Errorf("got last event %s, want the response to %s", events[4].Data, id)
	}
	for _, ev := range events {
		if ev.ID != "" {
			t.Errorf("%s: got id %s, want none, because a reader cannot resume there", ev.Name, ev.ID)
		}
	}
}

// A response without progress is one event, and the stream has the headers of the response.
func TestHandleRoute_StreamOfOneEvent(t *testing.T) {
	cases := []struct {
		name    string
		answer  func(*contract.Request) *contract.Response
		status  contract.Status
		headers map[string]string
	}{
		{"unsupported", unsupportedResponse, contract.StatusUnsupported, map[string]string{"X-Router-Fallback": "B"}},
		{"proposed", proposedResponse, contract.StatusProposed, map[string]string{"X-Router-Fallback": "C"}},
		{"replayed", replayedOf(completedResponse), contract.StatusCompleted, map[string]string{"Idempotency-Replayed": "true", "X-Router-Agent": "quality_agent"}},
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

func TestHandleRoute_FailingStream(t *testing.T) {
	overloaded := &contract.Error{Code: contract.CodeOverloaded, Message: "m"}
	first := func(req *contract.Request, emit func(*contract.Event)) { emit(eventsOf(completedResponse(req))[0]) }
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
		{"later, with a secret", failAfterFirstEvent, 200, contract.CodeInternal},
		{"panic later", func(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
			first(req, emit)
			panic("a secret")
		}, 200, contract.CodeInternal},
		{"response that cannot be encoded", func(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
			first(req, emit)
			r := completedResponse(req)
			r.Data.Results[0].Data = map[string]json.RawMessage{"a": json.RawMessage(`{"broken`)}
			return r, nil
		}, 200, contract.CodeInternal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log, core := &testkit.LogBuffer{}, &fakeBackend{later: fakeLater{stream: c.stream}}
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
				t.Errorf("got internal text in the response: %s", got.body)
			}
			if logged := strings.Contains(log.String(), `"level":"ERROR"`); logged != (c.code == contract.CodeInternal) {
				t.Errorf("got log %s", log)
			}
			if err := srv.stop(); err != nil { // waits until errors are observed
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{string(c.code)}, core.outcomes.list()); diff != "" {
				t.Errorf("outcomes differ (-want +got):\n%s", diff)
			}
		})
	}
}
