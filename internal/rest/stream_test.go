package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func answeringWith(answer func(*contract.Request) *contract.Response) *fakeCore {
	return &fakeCore{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		return answer(req), nil
	}}
}

func TestStreamTellsWhatHappens(t *testing.T) {
	srv := startServer(t, Config{}, &fakeCore{})
	got := srv.post(t, "/api/v1/route", prompt, "Accept", typeEvents)
	want := []string{"decision", "task.started", "task.progress", "task.done", "final"}
	events := eventsOf(t, string(got.body))
	if diff := cmp.Diff(want, names(events)); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{
		"Content-Type": typeEvents, "Cache-Control": "no-store", "X-Accel-Buffering": "no",
		"X-Router-Agent": "quality_agent", "X-Router-Source": "lexical",
	} {
		if got := got.Header.Get(name); got != value {
			t.Errorf("got %s %q, want %q", name, got, value)
		}
	}
	var last contract.Event
	if err := json.Unmarshal([]byte(events[4].data), &last); err != nil {
		t.Fatal(err)
	}
	if id := got.Header.Get("X-Request-Id"); last.RequestID != id || last.Response.RequestID != id || last.Response.Data.Answer != "All well." || last.At.IsZero() {
		t.Errorf("the last event is %s, want the answer to %s", events[4].data, id)
	}
	for _, ev := range events {
		if ev.id != "" {
			t.Errorf("%s has the id %s, but nobody can resume there", ev.event, ev.id)
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
			got := startServer(t, Config{}, answeringWith(c.answer)).post(t, "/api/v1/route", prompt, "Accept", typeEvents)
			events := eventsOf(t, string(got.body))
			if len(events) != 1 || !strings.Contains(events[0].data, `"status":"`+string(c.status)+`"`) {
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
			log, meter := &logLines{}, &counts{}
			srv := startServer(t, Config{Logger: log.logger()}, &fakeCore{later: fakeLater{stream: c.stream}, meter: meter})
			got := srv.post(t, "/api/v1/route", prompt, "Accept", typeEvents)
			problem := got.body
			if c.status == 200 {
				events := eventsOf(t, string(got.body))
				if diff := cmp.Diff([]string{"decision", eventError}, names(events)); diff != "" {
					t.Fatalf("events differ (-want +got):\n%s", diff)
				}
				problem = []byte(events[1].data)
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
			if diff := cmp.Diff([]string{string(c.code)}, meter.outcomes); diff != "" {
				t.Errorf("outcomes differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A connection on which nothing happens is kept open by comments, the first of
// which begins the stream.
func TestHeartbeat(t *testing.T) {
	release := make(chan struct{})
	core := &fakeCore{later: fakeLater{
		stream: func(_ context.Context, req *contract.Request, _ func(*contract.Event)) (*contract.Response, error) {
			<-release
			return completed(req), nil
		},
		events: func(_ context.Context, _ uint64, emit func(uint64, *contract.Event) error) error {
			<-release
			return emit(1, final(stored(testRequest)))
		},
	}}
	srv := startServer(t, Config{Heartbeat: time.Millisecond}, core)
	open := func(method, path, body string) *reader {
		resp := srv.open(t.Context(), t, method, path, body)
		if ct := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || ct != typeEvents {
			t.Fatalf("got %d %s, want a stream", resp.StatusCode, ct)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return newReader(resp.Body)
	}
	readers := []*reader{
		open(http.MethodPost, "/api/v1/route", prompt),
		open(http.MethodGet, "/api/v1/requests/"+testRequest+"/events", ""),
	}
	for _, r := range readers {
		for range 3 {
			if ev, err := r.next(); err != nil || ev.comment == "" {
				t.Fatalf("got %+v (%v), want a comment", ev, err)
			}
		}
	}
	close(release)
	for _, r := range readers {
		for {
			ev, err := r.next()
			if err != nil {
				t.Fatalf("the stream ended with %v, without the event final", err)
			}
			if ev.event == "final" {
				break
			}
		}
	}
}

// open sends a request for events and returns while they come.
func (ts *testServer) open(ctx context.Context, t testing.TB, method, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+ts.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", typeJSON)
	req.Header.Set("Accept", typeEvents)
	resp, err := ts.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestReaderWhoLeavesCancelsTheWork(t *testing.T) {
	ended := make(chan error, 1)
	core := &fakeCore{later: fakeLater{
		stream: func(ctx context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
			emit(happened(completed(req))[0])
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		},
	}}
	srv := startServer(t, Config{}, core)
	ctx, leave := context.WithCancel(t.Context())
	resp := srv.open(ctx, t, http.MethodPost, "/api/v1/route", prompt)
	if ev, err := newReader(resp.Body).next(); err != nil || ev.event != "decision" {
		t.Fatalf("got %+v (%v), want the decision", ev, err)
	}
	leave()
	resp.Body.Close()
	if cause := <-ended; !errors.Is(cause, context.Canceled) {
		t.Errorf("the work ended with %v, want %v", cause, context.Canceled)
	}
}

// A reader who takes nothing holds up the work for events, but not for progress.
func TestSlowReader(t *testing.T) {
	ctx, leave := context.WithCancelCause(t.Context())
	queue := make(chan queued, 2)
	progress := &contract.Event{Type: contract.EventTaskProgress}
	for range 1000 {
		if err := enqueue(ctx, queue, 0, progress); err != nil {
			t.Fatal(err)
		}
	}
	if len(queue) != 1 {
		t.Errorf("got %d events queued, want 1: the other place is not progress's to take", len(queue))
	}
	queue <- queued{}
	waits := []struct {
		seq uint64
		ev  *contract.Event
	}{{0, &contract.Event{Type: contract.EventTaskDone}}, {7, progress}} // at 7 the reader could resume: it must not miss it
	for _, w := range waits {
		done := make(chan error, 1)
		go func() { done <- enqueue(ctx, queue, w.seq, w.ev) }()
		<-queue
		if err := <-done; err != nil {
			t.Errorf("with room again got %v", err)
		}
	}
	leave(errReaderLeft)
	if err := enqueue(ctx, queue, 7, progress); !errors.Is(err, errReaderLeft) {
		t.Errorf("after the reader left got %v, want %v", err, errReaderLeft)
	}
}

// brokenWriter is a connection that takes some writes and then none.
type brokenWriter struct {
	*httptest.ResponseRecorder
	left int
}

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return b.ResponseRecorder.Write(p)
}

// When a write does not get through, the source is told and waited for.
func TestStreamToNobody(t *testing.T) {
	for _, writes := range []int{0, 1, 2} {
		var cause error
		log := &logLines{}
		core := &fakeCore{later: fakeLater{events: func(ctx context.Context, _ uint64, emit func(uint64, *contract.Event) error) error {
			for seq := uint64(1); ; seq++ {
				if err := emit(seq, happened(stored(testRequest))[0]); err != nil {
					cause = context.Cause(ctx)
					return err
				}
			}
		}}}
		s := newServer(t, Config{Logger: log.logger()}, core)
		w := &brokenWriter{ResponseRecorder: httptest.NewRecorder(), left: writes}
		s.ServeHTTP(w, localRequest(http.MethodGet, "/api/v1/requests/"+testRequest+"/events", ""))
		if !errors.Is(cause, errReaderLeft) {
			t.Errorf("after %d writes the source ended with %v, want %v", writes, cause, errReaderLeft)
		}
		if got := strings.Count(w.Body.String(), "\n\n"); got != writes || s.taken() != 0 {
			t.Errorf("got %d events and %d requests, want %d and 0", got, s.taken(), writes)
		}
		if strings.Contains(log.String(), `"level":"ERROR"`) {
			t.Errorf("a reader who leaves is in the log as an error: %s", log)
		}
	}
}

// Many readers at a time get all events of their request, in order.
func TestEventsKeepTheirOrder(t *testing.T) {
	const many = 500
	core := &fakeCore{later: fakeLater{events: func(_ context.Context, _ uint64, emit func(uint64, *contract.Event) error) error {
		for seq := uint64(1); seq < many; seq++ {
			if err := emit(seq, &contract.Event{Type: contract.EventTaskProgress, At: testTime}); err != nil {
				return err
			}
		}
		return emit(many, final(stored(testRequest)))
	}}}
	srv := startServer(t, Config{}, core)
	want := make([]string, many)
	for i := range want {
		want[i] = strconv.Itoa(i + 1)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got := srv.send(t, http.MethodGet, "/api/v1/requests/"+testRequest+"/events", nil)
			ids := make([]string, 0, many)
			for _, ev := range eventsOf(t, string(got.body)) {
				ids = append(ids, ev.id)
			}
			if diff := cmp.Diff(want, ids); diff != "" {
				t.Errorf("ids differ (-want +got):\n%s", diff)
			}
		})
	}
	all.Wait()
}
