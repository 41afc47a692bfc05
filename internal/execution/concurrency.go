package execution

import (
	"context"
	"sync"
)

// Permit bounds how many requests execute at the same time.
type Permit interface {
	Acquire(ctx context.Context)
	Release()
}

// NoPermit is the Permit of synchronous requests, which admission control bounds
// already.
type NoPermit struct{}

// Acquire implements Permit.
func (NoPermit) Acquire(context.Context) {}

// Release implements Permit.
func (NoPermit) Release() {}

// ConcurrencyLimiter is a semaphore that bounds the asynchronous requests that
// execute at the same time. Requests whose agents answered 202 and post their
// result later do not count, because they only cost a parked goroutine and may
// wait for a day.
type ConcurrencyLimiter struct {
	semaphore chan struct{} // one token for each executing request
	released  chan struct{} // signals WaitIdle that a token was returned
}

// NewConcurrencyLimiter returns a limiter for n requests.
func NewConcurrencyLimiter(n int) *ConcurrencyLimiter {
	return &ConcurrencyLimiter{semaphore: make(chan struct{}, n), released: make(chan struct{}, 1)}
}

// NewPermit returns the permit of one request, not acquired yet.
func (l *ConcurrencyLimiter) NewPermit() *RequestPermit { return &RequestPermit{limiter: l} }

// WaitIdle waits until no request executes, or ctx ends. One goroutine may wait.
func (l *ConcurrencyLimiter) WaitIdle(ctx context.Context) {
	for len(l.semaphore) > 0 {
		select {
		case <-l.released:
		case <-ctx.Done():
			return
		}
	}
}

// RequestPermit is the permit of one request. It is held while at least one
// subtask of the request executes, and shared by all of them.
//
// mu stays locked while Acquire waits: all subtasks of a request have the same
// context, so goroutines queued on mu are released when that context ends.
type RequestPermit struct {
	limiter *ConcurrencyLimiter

	mu       sync.Mutex
	active   int // subtasks that execute
	acquired bool
}

// Acquire counts one more executing subtask and, for the first one, waits for a
// permit. If ctx ends first, the subtask proceeds without a permit, because all
// that is left to do is to record its end.
func (p *RequestPermit) Acquire(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active++
	if p.acquired {
		return
	}
	select {
	case p.limiter.semaphore <- struct{}{}:
		p.acquired = true
		return
	default: // try first, so that a free permit is taken even if ctx has ended
	}
	select {
	case p.limiter.semaphore <- struct{}{}:
		p.acquired = true
	case <-ctx.Done():
	}
}

// acquireNow acquires the permit for a subtask that only has to record its end:
// it does not wait.
func acquireNow(p Permit) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	p.Acquire(ended)
}

// Release counts one executing subtask less, and returns the permit after the
// last one.
func (p *RequestPermit) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active--; p.active > 0 || !p.acquired {
		return
	}
	<-p.limiter.semaphore
	p.acquired = false
	select {
	case p.limiter.released <- struct{}{}:
	default: // a signal is pending already
	}
}
