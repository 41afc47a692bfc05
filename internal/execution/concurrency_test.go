package execution

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestRequestPermit_IsSharedBySubtasks(t *testing.T) {
	limiter := NewConcurrencyLimiter(1)
	permit := limiter.NewPermit(quota.Owner{})
	permit.Acquire(t.Context())
	permit.Acquire(t.Context()) // does not block: the request has its permit
	permit.Release()
	if got := limiter.semaphore.CountHeld(); got != 1 {
		t.Errorf("got %d permits in use after the first release, want 1", got)
	}
	permit.Release()
	if got := limiter.semaphore.CountHeld(); got != 0 {
		t.Errorf("got %d permits in use after the last release, want 0", got)
	}
	limiter.WaitIdle(t.Context())
}

func TestRequestPermit_ProceedsWithoutPermitIfContextEnds(t *testing.T) {
	limiter := NewConcurrencyLimiter(1)
	limiter.NewPermit(quota.Owner{}).Acquire(t.Context())
	waiting := limiter.NewPermit(quota.Owner{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	waiting.Acquire(ended)
	waiting.Release()
	if got := limiter.semaphore.CountHeld(); got != 1 {
		t.Errorf("got %d permits in use, want that of the other request", got)
	}
}

func TestRequestPermit_IsGrantedToTenantsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewConcurrencyLimiter(1)
		executing := limiter.NewPermit(quota.Owner{Tenant: "loud"})
		executing.Acquire(t.Context())
		started := make(chan string, 3)
		for _, tenant := range []string{"loud", "loud", "quiet"} {
			go func() {
				permit := limiter.NewPermit(quota.Owner{Tenant: tenant})
				permit.Acquire(t.Context())
				started <- tenant
				permit.Release()
			}()
			synctest.Wait()
		}
		executing.Release()
		synctest.Wait()
		for i, want := range []string{"loud", "quiet", "loud"} {
			if got := <-started; got != want {
				t.Errorf("request %d: got tenant %q, want %q", i, got, want)
			}
		}
	})
}

// signalledContext is a context that closes waits when its end is awaited.
type signalledContext struct {
	context.Context //nolint:containedctx // it is one
	once            *sync.Once
	waits           chan struct{}
}

func (c signalledContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}

// While one subtask waits for the permit, another one can release and pause.
func TestRequestPermit_BlocksNoOtherSubtask(t *testing.T) {
	limiter := NewConcurrencyLimiter(1)
	permit := limiter.NewPermit(quota.Owner{})
	other := limiter.NewPermit(quota.Owner{})
	permit.Acquire(t.Context())
	permit.Release() // the subtask waits for something
	other.Acquire(t.Context())

	waiting, cancel := context.WithCancel(t.Context())
	ctx := signalledContext{waiting, new(sync.Once), make(chan struct{})}
	acquired, continued := make(chan struct{}), make(chan struct{})
	go func() {
		permit.Acquire(ctx)
		close(acquired)
	}()
	testkit.WaitClosed(t, ctx.waits)
	go func() {
		acquireNow(permit)
		permit.Release()
		close(continued)
	}()
	t.Cleanup(func() { // also ends the goroutines of a test that fails
		cancel()
		testkit.WaitClosed(t, acquired)
		testkit.WaitClosed(t, continued)
	})
	testkit.WaitClosed(t, continued)
	other.Release()
	testkit.WaitClosed(t, acquired)
	if got := limiter.semaphore.CountHeld(); got != 1 {
		t.Errorf("got %d permits in use, want that of the subtask that waited", got)
	}
	permit.Release()
	if got := limiter.semaphore.CountHeld(); got != 0 {
		t.Errorf("got %d permits in use at the end, want 0", got)
	}
}

// If the context of the subtask that waits for the permit ends, another one waits
// instead, and all of them share the permit.
func TestRequestPermit_OutlivesContextOfFirstSubtask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewConcurrencyLimiter(1)
		permit, other := limiter.NewPermit(quota.Owner{}), limiter.NewPermit(quota.Owner{})
		other.Acquire(t.Context())
		first, cancel := context.WithCancel(t.Context())
		var began []string
		var mu sync.Mutex
		start := func(name string, ctx context.Context) {
			go func() {
				permit.Acquire(ctx)
				mu.Lock()
				defer mu.Unlock()
				began = append(began, name)
			}()
			synctest.Wait()
		}
		start("first", first)
		start("second", t.Context())
		start("third", t.Context())
		cancel()
		synctest.Wait()
		if !slices.Equal(began, []string{"first"}) {
			t.Errorf("got %v after the context ended, want the first one without a permit", began)
		}
		other.Release()
		synctest.Wait()
		if len(began) != 3 || limiter.semaphore.CountHeld() != 1 {
			t.Errorf("got %v and %d permits, want three with one permit", began, limiter.semaphore.CountHeld())
		}
		for range 3 {
			permit.Release()
		}
		if got := limiter.semaphore.CountHeld(); got != 0 {
			t.Errorf("got %d permits in use at the end, want 0", got)
		}
	})
}
