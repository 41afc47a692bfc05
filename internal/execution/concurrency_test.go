package execution

import (
	"context"
	"testing"
)

func TestRequestPermit_IsSharedBySubtasks(t *testing.T) {
	limiter := NewConcurrencyLimiter(1)
	permit := limiter.NewPermit()
	permit.Acquire(t.Context())
	permit.Acquire(t.Context()) // does not block: the request has its permit
	permit.Release()
	if got := len(limiter.semaphore); got != 1 {
		t.Errorf("got %d permits in use after the first release, want 1", got)
	}
	permit.Release()
	if got := len(limiter.semaphore); got != 0 {
		t.Errorf("got %d permits in use after the last release, want 0", got)
	}
	limiter.WaitIdle(t.Context())
}

func TestRequestPermit_ProceedsWithoutPermitIfContextEnds(t *testing.T) {
	limiter := NewConcurrencyLimiter(1)
	limiter.NewPermit().Acquire(t.Context())
	waiting := limiter.NewPermit()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	waiting.Acquire(ended)
	waiting.Release()
	if got := len(limiter.semaphore); got != 1 {
		t.Errorf("got %d permits in use, want that of the other request", got)
	}
}
