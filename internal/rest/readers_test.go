package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
)

const eventsPath = "/api/v1/requests/" + testRequest + "/events"

// waiting is a core whose requests have one event and then nothing more.
type waiting struct {
	*fakeCore
	begun, ended atomic.Int64
	causes       chan error // why readers' contexts ended
}

func newWaiting() *waiting {
	w := &waiting{fakeCore: &fakeCore{forget: true}, causes: make(chan error, 16)}
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
	w.later.events = func(ctx context.Context, _ uint64, emit func(uint64, *contract.Event) error) error {
		if err := emit(1, happened(stored(testRequest))[0]); err != nil {
			return err
		}
		return wait(ctx)
	}
	w.later.stream = func(ctx context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
		emit(happened(completed(req))[0])
		return nil, wait(ctx)
	}
	w.handle = func(ctx context.Context, _ *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		return nil, wait(ctx)
	}
	return w
}

// Readers have a bound of their own, and hold none of the places of requests.
func TestReadersHaveTheirOwnBound(t *testing.T) {
	core := newWaiting()
	core.handle = nil
	meter := &counts{}
	core.meter = meter
	srv := startServer(t, Config{MaxInFlight: 1, MaxReaders: 2}, core.fakeCore)
	ctx, leave := context.WithCancel(t.Context())
	var all [2]*http.Response
	for i := range all {
		all[i] = srv.open(ctx, t, http.MethodGet, eventsPath, "")
		if _, err := newReader(all[i].Body).next(); err != nil {
			t.Fatal(err)
		}
	}
	if got := srv.get(t, eventsPath); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != "1" {
		t.Errorf("one reader too many got %d, want 503 with Retry-After", got.StatusCode)
	}
	if got := srv.post(t, "/api/v1/route", prompt); got.StatusCode != http.StatusOK {
		t.Errorf("a request got %d, want 200: readers are no work", got.StatusCode)
	}
	if meter.inFlight != 0 {
		t.Errorf("got %d requests in flight, want 0", meter.inFlight)
	}
	leave()
	for _, resp := range all {
		resp.Body.Close()
	}
	for range all {
		<-core.causes
	}
}

// A full server takes what empties it.
func TestFullServerTakesResultsAndCancels(t *testing.T) {
	core := newHolding()
	srv := startServer(t, Config{MaxInFlight: 1}, core.fakeCore)
	running := inBackground(srv, "a")
	<-core.entered
	agent := []string{"Authorization", "Bearer " + testToken}
	if got := srv.post(t, "/api/v1/tasks/"+testTask+"/result", `{"task_id":"`+testTask+`","status":"success"}`, agent...); got.StatusCode != http.StatusOK {
		t.Errorf("a result got %d, want 200", got.StatusCode)
	}
	if got := srv.post(t, "/api/v1/tasks/"+testTask+"/progress", `{"message":"m"}`, agent...); got.StatusCode != http.StatusNoContent {
		t.Errorf("progress got %d, want 204", got.StatusCode)
	}
	if got := srv.post(t, "/api/v1/requests/"+testRequest+"/cancel", ""); got.StatusCode != http.StatusOK {
		t.Errorf("a cancel got %d, want 200", got.StatusCode)
	}
	if got := srv.get(t, "/api/v1/requests/"+testRequest); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a look got %d, want 503", got.StatusCode)
	}
	close(core.release)
	if got := <-running; got != http.StatusOK {
		t.Errorf("the request got %d, want 200", got)
	}
}

// A server that stops lets its readers go at once, and finishes what it streams
// the answer of.
func TestDrainEndsReaders(t *testing.T) {
	core := newWaiting()
	release := make(chan struct{})
	core.later.stream = func(_ context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
		emit(happened(completed(req))[0])
		<-release
		return completed(req), nil
	}
	srv := startServer(t, Config{DrainTimeout: forever}, core.fakeCore)
	watched := srv.open(t.Context(), t, http.MethodGet, eventsPath, "")
	answered := srv.open(t.Context(), t, http.MethodPost, "/api/v1/route", prompt)
	defer watched.Body.Close()
	defer answered.Body.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()

	text, err := io.ReadAll(watched.Body)
	if err != nil || !strings.HasSuffix(string(text), ": the server is stopping; connect again\n\n") {
		t.Errorf("the reader got %q (%v), want a comment and the end", text, err)
	}
	if cause := <-core.causes; !errors.Is(cause, errStopping) {
		t.Errorf("its context ended with %v, want %v", cause, errStopping)
	}
	close(release)
	text, err = io.ReadAll(answered.Body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"decision", "final"}, names(eventsOf(t, string(text)))); diff != "" {
		t.Errorf("events of the running request differ (-want +got):\n%s", diff)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// Work that does not end while the server drains is cut, and its stream says so.
func TestDrainCutsStreams(t *testing.T) {
	core := newWaiting()
	srv := startServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: forever}, core.fakeCore)
	resp := srv.open(t.Context(), t, http.MethodPost, "/api/v1/route", prompt)
	defer resp.Body.Close()
	r := newReader(resp.Body)
	if _, err := r.next(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()
	if ev, err := r.next(); err != nil || ev.event != eventError || !strings.Contains(ev.data, `"code":"overloaded"`) {
		t.Errorf("got %+v (%v), want an error that says overloaded", ev, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A core that says how far it got when the server stops is heard, by every one
// of its callers.
func TestDrainWritesWhatWasReached(t *testing.T) {
	const callers = 30
	core := newWaiting()
	core.later.stream = func(ctx context.Context, req *contract.Request, emit func(*contract.Event)) (*contract.Response, error) {
		emit(happened(completed(req))[0])
		<-ctx.Done()
		emit(happened(completed(req))[3])
		resp := completed(req)
		resp.Status, resp.Data = contract.StatusCancelled, contract.ResponseData{Mode: contract.DataDispatch}
		return resp, nil
	}
	srv := startServer(t, Config{DrainTimeout: time.Millisecond, DrainGrace: forever}, core.fakeCore)
	readers := make([]*reader, callers)
	for i := range readers {
		resp := srv.open(t.Context(), t, http.MethodPost, "/api/v1/route", prompt)
		t.Cleanup(func() { resp.Body.Close() })
		readers[i] = newReader(resp.Body)
		if ev, err := readers[i].next(); err != nil || ev.event != "decision" {
			t.Fatalf("got %+v (%v), want the decision", ev, err)
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()
	for i, r := range readers {
		for _, want := range []string{"task.done", "final"} {
			if ev, err := r.next(); err != nil || ev.event != want {
				t.Errorf("caller %d got %+v (%v), want %s", i, ev, err, want)
			}
		}
	}
	if err := <-stopped; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// Ten thousand callers who leave in the middle, a quarter of each kind, leave
// nothing behind.
func TestAbandonedRequestsLeaveNothing(t *testing.T) {
	const callers, atATime = 10_000, 200
	if testing.Short() {
		t.Skip("10,000 connections")
	}
	already := goleak.IgnoreCurrent()
	core := newWaiting()
	srv := startServer(t, Config{Heartbeat: time.Millisecond}, core.fakeCore)
	kinds := []func(ctx context.Context){
		func(ctx context.Context) { readOne(t, srv.open(ctx, t, http.MethodGet, eventsPath, "")) },
		func(ctx context.Context) { readOne(t, srv.open(ctx, t, http.MethodPost, "/api/v1/route", prompt)) },
		func(ctx context.Context) { // leaves without reading
			srv.open(ctx, t, http.MethodGet, eventsPath, "").Body.Close()
		},
		func(ctx context.Context) { // leaves before there is anything to read
			ctx, leave := context.WithTimeout(ctx, time.Millisecond)
			defer leave()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+srv.addr+"/api/v1/route", strings.NewReader(prompt))
			if err != nil {
				panic(err)
			}
			req.Header.Set("Content-Type", typeJSON)
			if resp, err := srv.client.Do(req); err == nil {
				resp.Body.Close()
			}
		},
	}
	for range callers / atATime {
		var all sync.WaitGroup
		for i := range atATime {
			all.Go(func() {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				kinds[i%len(kinds)](ctx)
			})
		}
		all.Wait()
	}
	if err := srv.stop(); err != nil { // waits for what still runs
		t.Errorf("Serve: %v", err)
	}
	if begun, ended := core.begun.Load(), core.ended.Load(); begun != ended || begun < callers/2 {
		t.Errorf("the core was asked %d times, and %d of them ended", begun, ended)
	}
	if got := srv.taken(); got != 0 {
		t.Errorf("got %d places taken, want 0", got)
	}
	if err := goleak.Find(already); err != nil {
		t.Errorf("%d goroutines run: %v", runtime.NumGoroutine(), err)
	}
}

func readOne(t *testing.T, resp *http.Response) {
	defer resp.Body.Close()
	if _, err := newReader(resp.Body).next(); err != nil {
		t.Error(err)
	}
}
