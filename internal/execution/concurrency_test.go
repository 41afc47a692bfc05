package execution

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/caprouter/caprouter/internal/quota"
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
