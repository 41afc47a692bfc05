package httpserver

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/testkit"
)

// TestServer_ReleasesAbandonedRequests: ten thousand callers disconnect, a quarter of them at
// each of four stages.
func TestServer_ReleasesAbandonedRequests(t *testing.T) {
	const callers, batch = 10_000, 200
	if testing.Short() {
		t.Skip("10,000 connections")
	}
	already := goleak.IgnoreCurrent()
	f := newWaitingAPI()
	srv := startServer(t, Config{Heartbeat: time.Millisecond}, f.fakeAPI)
	readFirst := func(ctx context.Context, method, path string) {
		resp, err := srv.open(ctx, method, path, "")
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if _, err := testkit.NewSSEReader(resp.Body).Next(); err != nil {
			t.Error(err)
		}
	}
	kinds := []func(ctx context.Context){
		func(ctx context.Context) { readFirst(ctx, http.MethodGet, "/events") },
		func(ctx context.Context) { readFirst(ctx, http.MethodPost, "/stream") },
		func(ctx context.Context) { // disconnect without reading
			if resp, err := srv.open(ctx, http.MethodGet, "/events", ""); err == nil {
				resp.Body.Close()
			}
		},
		func(ctx context.Context) { // disconnect before the response
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if resp, err := srv.open(ctx, http.MethodPost, "/work", "{}"); err == nil {
				resp.Body.Close()
			}
		},
	}
	for range callers / batch {
		var all sync.WaitGroup
		for i := range batch {
			all.Go(func() {
				ctx, disconnect := context.WithCancel(t.Context())
				defer disconnect()
				kinds[i%len(kinds)](ctx)
			})
		}
		all.Wait()
	}
	if err := srv.stop(); err != nil { // waits for running requests
		t.Errorf("Serve: %v", err)
	}
	if begun, ended := f.begun.Load(), f.ended.Load(); begun != ended || begun < callers/2 {
		t.Errorf("got %d requests begun and %d ended", begun, ended)
	}
	if got := srv.admission.inFlight(); got != 0 {
		t.Errorf("got %d permits held, want 0", got)
	}
	if err := goleak.Find(already); err != nil {
		t.Errorf("got %d goroutines: %v", runtime.NumGoroutine(), err)
	}
}
