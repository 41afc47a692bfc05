package run_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/run"
)

func TestForEach_CallsEveryIndexOnceWithinLimit(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-2, 40).Draw(t, "n")
		limit := rapid.IntRange(-2, 12).Draw(t, "limit")
		bound := int64(max(limit, 1))
		calls := make([]atomic.Int64, max(n, 0))
		var running, tooMany atomic.Int64
		run.ForEach(ctx, limit, n, func(_ context.Context, i int) {
			if now := running.Add(1); now > bound {
				tooMany.Store(now)
			}
			runtime.Gosched()
			calls[i].Add(1)
			running.Add(-1)
		})
		if got := tooMany.Load(); got != 0 {
			t.Errorf("%d calls at a time, want at most %d", got, bound)
		}
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("fn(%d) was called %d times, want once", i, got)
			}
		}
	})
}

func TestForEach_UsesLimit(t *testing.T) {
	tests := []struct {
		name     string
		limit, n int
		want     time.Duration // n calls of one second each
	}{
		{"one call at a time", 1, 4, 4 * time.Second},
		{"two at a time", 2, 4, 2 * time.Second},
		{"uneven", 3, 4, 2 * time.Second},
		{"more than calls", 9, 4, time.Second},
		{"no limit", 0, 3, 3 * time.Second},
		{"no calls", 3, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				run.ForEach(t.Context(), tt.limit, tt.n, func(context.Context, int) { <-time.After(time.Second) })
				if got := time.Since(start); got != tt.want {
					t.Errorf("got duration %s, want %s", got, tt.want)
				}
			})
		})
	}
}

func TestForEach_CallsEveryIndexIfContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := make([]error, 5)
	run.ForEach(ctx, 2, len(got), func(ctx context.Context, i int) { got[i] = ctx.Err() })
	for i, err := range got {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("index %d: got %v, want %v", i, err, context.Canceled)
		}
	}
}

func TestForEach_PanicsInCaller(t *testing.T) {
	for _, limit := range []int{1, 2, 8} {
		synctest.Test(t, func(t *testing.T) {
			var running, after atomic.Int64
			got := recoverFrom(func() {
				run.ForEach(t.Context(), limit, 100, func(ctx context.Context, i int) {
					running.Add(1)
					defer running.Add(-1)
					if i == 3 {
						panic(errBroken)
					}
					if i > 3 {
						after.Add(1)
						<-ctx.Done() // a panic must end the calls that are running
					}
				})
			})
			p, ok := got.(*run.PanicError)
			if !ok {
				t.Fatalf("limit %d: recovered %v (%T), want a *run.PanicError", limit, got, got)
			}
			if !errors.Is(p, errBroken) || !strings.Contains(p.Error(), "each_test.go") {
				t.Errorf("limit %d: got %v, want %v with the stack of this file", limit, p, errBroken)
			}
			if n := running.Load(); n != 0 {
				t.Errorf("limit %d: %d calls still running when the panic arrived, want 0", limit, n)
			}
			if n := int(after.Load()); n > limit {
				t.Errorf("limit %d: %d calls after the panic, want at most %d", limit, n, limit)
			}
		})
	}
}

func TestForEach_ReportsGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Both calls must run, so that one of them is not in the caller's
		// goroutine.
		var both sync.WaitGroup
		both.Add(2)
		caller := make(chan struct{}) // closed when the call in the caller's goroutine may return
		got := recoverFrom(func() {
			self := goroutineHeader()
			run.ForEach(t.Context(), 2, 2, func(context.Context, int) {
				both.Done()
				both.Wait()
				if goroutineHeader() == self {
					<-caller
					return
				}
				defer close(caller)
				runtime.Goexit()
			})
		})
		if err, ok := got.(error); !ok || !strings.Contains(err.Error(), "ended by runtime.Goexit") {
			t.Errorf("recovered %v, want an error that contains ended by runtime.Goexit", got)
		}
	})
}

func TestForEach_Nests(t *testing.T) {
	var mu sync.Mutex
	var got []int
	run.ForEach(t.Context(), 3, 3, func(ctx context.Context, i int) {
		run.ForEach(ctx, 2, 4, func(_ context.Context, j int) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, 4*i+j)
		})
	})
	slices.Sort(got)
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func BenchmarkForEach(b *testing.B) {
	for _, bb := range []struct {
		name     string
		limit, n int
	}{{"one", 8, 1}, {"two", 8, 2}, {"eight", 8, 8}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run.ForEach(b.Context(), bb.limit, bb.n, func(context.Context, int) {})
			}
		})
	}
}

// recoverFrom returns the value that fn panics with, or nil.
func recoverFrom(fn func()) (value any) {
	defer func() { value = recover() }()
	fn()
	return nil
}

// goroutineHeader returns the header line of the stack, which names the goroutine.
func goroutineHeader() string {
	buf := make([]byte, 64)
	id, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), "[")
	return id
}
