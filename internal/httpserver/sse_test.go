package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/testkit"
)

// source returns an API whose streams have this source.
func source(emit func(ctx context.Context, emit EmitFunc) error) *fakeAPI {
	return &fakeAPI{stream: func(*Context) EventStream { return EventStream{Source: emit} }}
}

// waitingAPI has streams with one event, and requests, that wait for the end of their context.
type waitingAPI struct {
	*fakeAPI
	begun, ended atomic.Int64
	causes       chan error // causes of the contexts of streams
}

func newWaitingAPI() *waitingAPI {
	w := &waitingAPI{causes: make(chan error, 16)}
	wait := func(ctx context.Context) error {
		w.begun.Add(1)
		defer w.ended.Add(1)
		<-ctx.Done()
		select {
		case w.causes <- context.Cause(ctx):
		default:
		}
		return ctx.Err()
	}
	w.fakeAPI = source(func(ctx context.Context, emit EmitFunc) error {
		if err := emit(&Event{ID: 1, Name: "first", Data: 1}); err != nil {
			return err
		}
		return wait(ctx)
	})
	w.work = func(c *Context) error { return wait(c.Request.Context()) }
	return w
}

// openEvents opens a stream of events.
func (ts *testServer) openEvents(ctx context.Context, t testing.TB, method, path string) (*testkit.SSEReader, func()) {
	t.Helper()
	resp, err := ts.open(ctx, method, path, "")
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || ct != MediaTypeEvents {
		t.Fatalf("got %d %s, want a stream", resp.StatusCode, ct)
	}
	closeBody := sync.OnceFunc(func() { resp.Body.Close() })
	t.Cleanup(closeBody)
	return testkit.NewSSEReader(resp.Body), closeBody
}

func nextEvent(t testing.TB, r *testkit.SSEReader, want string) testkit.SSE {
	t.Helper()
	ev, err := r.Next()
	if err != nil || ev.Name != want {
		t.Fatalf("got %+v (%v), want %s", ev, err, want)
	}
	return ev
}

func TestStreamEvents_SetsHeaders(t *testing.T) {
	f := &fakeAPI{stream: func(*Context) EventStream {
		return EventStream{
			SetHeaders: func(c *Context, first *Event) { c.SetHeader("X-First", first.Name) },
			Source: func(_ context.Context, emit EmitFunc) error {
				return errors.Join(emit(&Event{ID: 7, Name: "a", Data: "x"}), emit(&Event{Name: "b", Data: "y"}))
			},
		}
	}}
	got := startServer(t, Config{}, f).send(t, "GET", "/events", "")
	for name, want := range map[string]string{
		"Content-Type": MediaTypeEvents, "Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-First": "a",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("got %s %q, want %q", name, value, want)
		}
	}
	want := []testkit.SSE{{ID: "7", Name: "a", Data: `"x"`}, {Name: "b", Data: `"y"`}}
	if diff := cmp.Diff(want, testkit.ReadSSE(t, got.body)); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

func TestStreamEvents_WithoutEventsIs204(t *testing.T) {
	got := startServer(t, Config{}, source(func(context.Context, EmitFunc) error { return nil })).send(t, "GET", "/events", "")
	if got.StatusCode != http.StatusNoContent {
		t.Errorf("got %d, want 204, so that browsers do not reconnect", got.StatusCode)
	}
}

// TestStreamEvents_Heartbeat: comments keep an idle connection open. The first one begins the
// stream.
func TestStreamEvents_Heartbeat(t *testing.T) {
	release := make(chan struct{})
	f := source(func(_ context.Context, emit EmitFunc) error {
		<-release
		return emit(&Event{Name: "last", Data: 1})
	})
	srv := startServer(t, Config{Heartbeat: time.Millisecond}, f)
	a, _ := srv.openEvents(t.Context(), t, "POST", "/stream")
	b, _ := srv.openEvents(t.Context(), t, "GET", "/events")
	for _, r := range []*testkit.SSEReader{a, b} {
		for range 3 {
			if ev, err := r.Next(); err != nil || ev.Comment == "" {
				t.Fatalf("got %+v (%v), want a comment", ev, err)
			}
		}
	}
	close(release)
	for _, r := range []*testkit.SSEReader{a, b} {
		for ev := (testkit.SSE{}); ev.Name != "last"; {
			var err error
			if ev, err = r.Next(); err != nil {
				t.Fatalf("got the stream ended with %v, without the last event", err)
			}
		}
	}
}

func TestStreamEvents_CancelsSourceWhenReaderDisconnects(t *testing.T) {
	f := newWaitingAPI()
	srv := startServer(t, Config{}, f.fakeAPI)
	ctx, disconnect := context.WithCancel(t.Context())
	r, closeBody := srv.openEvents(ctx, t, "POST", "/stream")
	nextEvent(t, r, "first")
	disconnect()
	closeBody()
	if cause := testkit.Receive(t, f.causes); !errors.Is(cause, context.Canceled) {
		t.Errorf("source: got %v, want %v", cause, context.Canceled)
	}
}

// TestEnqueue_BackpressureOnSlowReader: a slow reader blocks the source, except for events that may
// be dropped.
func TestEnqueue_BackpressureOnSlowReader(t *testing.T) {
	ctx, disconnect := context.WithCancelCause(t.Context())
	queue := make(chan *Event, 2)
	droppable, durable := &Event{Name: "progress", Droppable: true}, &Event{Name: "done"}
	for range 1000 {
		if err := enqueueEvent(ctx, queue, droppable); err != nil {
			t.Fatal(err)
		}
	}
	if len(queue) != 1 {
		t.Errorf("got %d events queued, want 1, because droppable events fill half of the queue only", len(queue))
	}
	queue <- durable
	done := make(chan error, 1)
	go func() { done <- enqueueEvent(ctx, queue, durable) }()
	testkit.Receive(t, queue)
	if err := testkit.Receive(t, done); err != nil {
		t.Errorf("after the reader took an event: got %v", err)
	}
	disconnect(errReaderDisconnected)
	if err := enqueueEvent(ctx, queue, durable); !errors.Is(err, errReaderDisconnected) {
		t.Errorf("after the reader disconnected: got %v, want %v", err, errReaderDisconnected)
	}
}

// brokenWriter is a connection that breaks after some writes.
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

// TestStreamEvents_WaitsForSourceAfterWriteError: the source is cancelled, and the handler waits
// for it.
func TestStreamEvents_WaitsForSourceAfterWriteError(t *testing.T) {
	for _, writes := range []int{0, 1, 2} {
		var cause error
		log := &testkit.LogBuffer{}
		f := source(func(ctx context.Context, emit EmitFunc) error {
			for id := uint64(1); ; id++ {
				if err := emit(&Event{ID: id, Name: "a", Data: 1}); err != nil {
					cause = context.Cause(ctx)
					return err
				}
			}
		})
		s := newServer(t, Config{Logger: log.Logger()}, f)
		w := &brokenWriter{ResponseRecorder: httptest.NewRecorder(), left: writes}
		s.ServeHTTP(w, localRequest(http.MethodGet, "/events", ""))
		if !errors.Is(cause, errReaderDisconnected) {
			t.Errorf("source after %d writes: got %v, want %v", writes, cause, errReaderDisconnected)
		}
		if got := strings.Count(w.Body.String(), "\n\n"); got != writes || s.admission.inFlight() != 0 {
			t.Errorf("got %d events and %d requests, want %d and 0", got, s.admission.inFlight(), writes)
		}
		if strings.Contains(log.String(), `"level":"ERROR"`) {
			t.Errorf("got an error in the log for a disconnected reader: %s", log)
		}
	}
}

func TestStreamEvents_KeepsOrderForConcurrentReaders(t *testing.T) {
	const events = 500
	f := source(func(_ context.Context, emit EmitFunc) error {
		for id := uint64(1); id <= events; id++ {
			if err := emit(&Event{ID: id, Name: "a", Data: id}); err != nil {
				return err
			}
		}
		return nil
	})
	srv := startServer(t, Config{}, f)
	want := make([]string, events)
	for i := range want {
		want[i] = strconv.Itoa(i + 1)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var ids []string
			for _, ev := range testkit.ReadSSE(t, srv.send(t, http.MethodGet, "/events", "").body) {
				ids = append(ids, ev.ID)
			}
			if diff := cmp.Diff(want, ids); diff != "" {
				t.Errorf("ids differ (-want +got):\n%s", diff)
			}
		})
	}
	all.Wait()
}

func TestStreamEvents_ReadersHaveTheirOwnClass(t *testing.T) {
	f := newWaitingAPI()
	f.work = nil
	srv := startServer(t, Config{MaxInFlight: 1, MaxReaders: 2}, f.fakeAPI)
	ctx, disconnect := context.WithCancel(t.Context())
	var closers []func()
	for range 2 {
		r, closeBody := srv.openEvents(ctx, t, http.MethodGet, "/events")
		nextEvent(t, r, "first")
		closers = append(closers, closeBody)
	}
	if got := srv.send(t, "GET", "/events", ""); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != "1" {
		t.Errorf("reader above the limit: got %d, want 503 with Retry-After", got.StatusCode)
	}
	if got := srv.send(t, "POST", "/work", "{}"); got.StatusCode != http.StatusOK {
		t.Errorf("request: got %d, want 200, because readers hold no permit of its class", got.StatusCode)
	}
	if got := f.inFlight.Load(); got != 0 {
		t.Errorf("got %d requests in flight, want 0", got)
	}
	disconnect()
	for _, closeBody := range closers {
		closeBody()
		testkit.Receive(t, f.causes)
	}
}

// FuzzEncodeEvent: any data is encoded as one line of JSON that a reader decodes to the same value.
func FuzzEncodeEvent(f *testing.F) {
	f.Add(uint64(7), "32 of 64 lines")
	f.Add(uint64(0), "a\nb\r\nc\rd\u2028e\u2029\u0085f\x00\x0b")
	f.Add(uint64(1<<63), "\n\nevent: final\ndata: {}\n\n")
	f.Add(uint64(1), "\xff\ufeff<script>")
	f.Fuzz(func(t *testing.T, id uint64, message string) {
		var buf bytes.Buffer
		data := map[string]string{"message": message}
		if err := encodeEvent(&buf, &Event{ID: id, Name: "task.progress", Data: data}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(buf.String(), "\r") {
			t.Errorf("got a carriage return, which ends a line: %q", buf.String())
		}
		events := testkit.ReadSSE(t, buf.String())
		if len(events) != 1 || events[0].Name != "task.progress" || (events[0].ID == "") != (id == 0) {
			t.Fatalf("got %+v, want one event", events)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(events[0].Data), &got); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(message) && got["message"] != message {
			t.Errorf("got %q, want %q", got["message"], message)
		}
	})
}
