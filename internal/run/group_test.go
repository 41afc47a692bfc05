package run_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

var errBroken = errors.New("broken")

// untilDone has the form of most long-lived goroutines: it runs until its context ends and
// returns the reason.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestGroup_WaitReturnsFirstError(t *testing.T) {
	errStop := errors.New("received SIGTERM")
	tests := []struct {
		name  string
		start func(g *run.Group)
		want  string // "" = nil
	}{
		{"no goroutines", func(*run.Group) {}, ""},
		{"all return nil", func(g *run.Group) {
			g.Go("a", func(context.Context) error { return nil })
			g.Go("b", func(context.Context) error { return nil })
		}, ""},
		{"error stops the others", func(g *run.Group) {
			g.Go("waits", untilDone)
			g.Go("fails", func(context.Context) error { return errBroken })
		}, "fails: broken"},
		{"stopped without a cause", func(g *run.Group) {
			g.Go("waits", untilDone)
			g.Stop(nil)
		}, ""},
		{"stopped with a cause that the goroutine returns", func(g *run.Group) {
			g.Go("waits", func(ctx context.Context) error {
				<-ctx.Done()
				return fmt.Errorf("poll: %w", context.Cause(ctx))
			})
			g.Stop(errStop)
		}, ""},
		{"error while stopping", func(g *run.Group) {
			g.Go("flush", func(ctx context.Context) error {
				<-ctx.Done()
				return errBroken
			})
			g.Stop(errStop)
		}, "flush: broken"},
		{"cancellation without Stop", func(g *run.Group) {
			g.Go("dial", func(context.Context) error { return fmt.Errorf("dial: %w", context.Canceled) })
		}, "dial: dial: context canceled"},
		{"started by a goroutine of the group", func(g *run.Group) {
			g.Go("outer", func(context.Context) error {
				g.Go("inner", func(context.Context) error { return errBroken })
				return nil
			})
		}, "inner: broken"},
		{"started while stopping: runs with a done context", func(g *run.Group) {
			g.Stop(errStop)
			g.Go("late", func(ctx context.Context) error {
				if ctx.Err() == nil {
					return errors.New("context is not done")
				}
				return errBroken
			})
		}, "late: broken"},
		{"stopped by a goroutine of the group", func(g *run.Group) {
			g.Go("waits", untilDone)
			g.Go("signals", func(context.Context) error { g.Stop(errStop); return nil })
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := run.New(t.Context())
				tt.start(g)
				got := ""
				if err := g.Wait(); err != nil {
					got = err.Error()
				}
				if got != tt.want {
					t.Errorf("Wait: got %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestGroup_StopSetsCause(t *testing.T) {
	t.Run("Stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := run.New(t.Context())
			var got error
			g.Go("waits", func(ctx context.Context) error {
				<-ctx.Done()
				got = context.Cause(ctx)
				return nil
			})
			g.Stop(errBroken)
			g.Stop(errors.New("a second call has no effect"))
			if err := g.Wait(); err != nil {
				t.Fatalf("Wait: got %v, want nil", err)
			}
			if got != errBroken {
				t.Errorf("cause: got %v, want %v", got, errBroken)
			}
		})
	})
	t.Run("a failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := run.New(t.Context())
			var got error
			g.Go("waits", func(ctx context.Context) error {
				<-ctx.Done()
				got = context.Cause(ctx)
				return got
			})
			g.Go("fails", func(context.Context) error { return errBroken })
			if err := g.Wait(); !errors.Is(err, errBroken) {
				t.Fatalf("Wait: got %v, want %v", err, errBroken)
			}
			if want := "fails: broken"; got == nil || got.Error() != want {
				t.Errorf("cause: got %v, want %s", got, want)
			}
		})
	})
}

func TestGroup_KeepsFirstOfSeveralErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run.New(t.Context())
		for i := range 5 {
			g.Go(fmt.Sprintf("fails after %d s", i+1), func(context.Context) error {
				<-time.After(time.Duration(i+1) * time.Second)
				return errBroken
			})
		}
		start := time.Now()
		err := g.Wait()
		if want := "fails after 1 s: broken"; err == nil || err.Error() != want {
			t.Errorf("Wait: got %v, want %s", err, want)
		}
		if got, want := time.Since(start), 5*time.Second; got != want {
			t.Errorf("Wait returned after %s, want %s: it must wait for the slowest", got, want)
		}
	})
}

func TestGroup_StopsWithParentContext(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			g := run.New(ctx)
			g.Go("waits", untilDone)
			cancel()
			if err := g.Wait(); err != nil {
				t.Errorf("Wait: got %v, want nil", err)
			}
		})
	})
	t.Run("past its deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			g := run.New(ctx)
			g.Go("waits", untilDone)
			if err := g.Wait(); err != nil {
				t.Errorf("Wait: got %v, want nil", err)
			}
		})
	})
}

func TestGroup_ConvertsPanicToError(t *testing.T) {
	tests := []struct {
		name  string
		fn    func(context.Context) error
		value string // expected text after the name
		is    error  // expected target of errors.Is
	}{
		{"a string", func(context.Context) error { panic("boom") }, "panic: boom", nil},
		{"error", func(context.Context) error { panic(errBroken) }, "panic: broken", errBroken},
		{"nil", func(context.Context) error { panic(nil) }, "panic: panic called with nil argument", nil}, //nolint:govet // on purpose
		{"runtime error", func(context.Context) error { return overdue(nil) }, "panic: runtime error: invalid memory address", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := run.New(t.Context())
				g.Go("waits", untilDone)
				g.Go("learn", tt.fn)
				err := g.Wait()
				if err == nil || !strings.HasPrefix(err.Error(), "learn: "+tt.value) {
					t.Fatalf("Wait: got %v, want learn: %s …", err, tt.value)
				}
				if p, ok := errors.AsType[*run.PanicError](err); !ok || !strings.Contains(string(p.Stack), "group_test.go") {
					t.Errorf("got %v, want a *PanicError whose stack names this file", err)
				}
				if !strings.Contains(err.Error(), "group_test.go") {
					t.Errorf("got text %v, want it to contain the stack", err)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("errors.Is(%v, %v) is false", err, tt.is)
				}
			})
		})
	}
}

func TestGroup_ReportsGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run.New(t.Context())
		g.Go("test", func(context.Context) error { runtime.Goexit(); return nil })
		if err, want := g.Wait(), "test: ended by runtime.Goexit"; err == nil || err.Error() != want {
			t.Errorf("Wait: got %v, want %s", err, want)
		}
	})
}

func TestGroup_StartsNothingAfterWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run.New(t.Context())
		if err := g.Wait(); err != nil {
			t.Fatalf("Wait: got %v, want nil", err)
		}
		started := make(chan struct{})
		g.Go("too late", func(context.Context) error { close(started); return errBroken })
		if err := g.Wait(); err != nil {
			t.Errorf("second Wait: got %v, want nil", err)
		}
		select {
		case <-started:
			t.Error("a goroutine was started after Wait had returned")
		default:
		}
	})
}

// Requests start goroutines while the owner already waits: none may be lost, and
// the race detector must not report anything.
func TestGroup_GoDuringWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := run.New(t.Context())
		var started, ran atomic.Int64
		var starters sync.WaitGroup
		for range 8 {
			starters.Go(func() {
				for range 200 {
					g.Go("cancel task", func(context.Context) error { ran.Add(1); return nil })
					started.Add(1)
				}
			})
		}
		g.Go("hold", func(context.Context) error { starters.Wait(); return nil })
		if err := g.Wait(); err != nil {
			t.Fatalf("Wait: got %v, want nil", err)
		}
		if got, want := ran.Load(), started.Load(); got != want || want != 8*200 {
			t.Errorf("%d of %d goroutines ran, want all %d", got, want, 8*200)
		}
	})
}

// overdue dereferences its argument.
func overdue(deadline *time.Time) error {
	if deadline.IsZero() {
		return nil
	}
	return errBroken
}

func ExampleGroup() {
	g := run.New(context.Background())
	g.Go("watch registry", func(ctx context.Context) error {
		<-ctx.Done() // a real watcher runs until its context ends
		return ctx.Err()
	})
	g.Go("serve http", func(context.Context) error {
		return errors.New("address already in use")
	})
	fmt.Println(g.Wait())
	// Output: serve http: address already in use
}
