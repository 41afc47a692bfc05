package execution

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/internal/fairqueue"
	"github.com/caprouter/caprouter/internal/quota"
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
// execute at the same time. If no permit is free, tenants get one in turn, so that
// the backlog of one does not delay the others. Requests whose agents answered 202
// and post their result later do not count, because they only cost a parked
// goroutine and may wait for a day.
type ConcurrencyLimiter struct {
	semaphore *fairqueue.Semaphore[quota.Owner]
	released  chan struct{} // signals WaitIdle that a permit was returned
}

// NewConcurrencyLimiter returns a limiter for n requests.
func NewConcurrencyLimiter(n int) *ConcurrencyLimiter {
	return &ConcurrencyLimiter{semaphore: fairqueue.New[quota.Owner](n), released: make(chan struct{}, 1)}
}

// NewPermit returns the permit of one request of the owner, not acquired yet.
func (l *ConcurrencyLimiter) NewPermit(owner quota.Owner) *RequestPermit {
	return &RequestPermit{limiter: l, owner: owner}
}

// WaitIdle waits until no request executes, or ctx ends. One goroutine may wait.
func (l *ConcurrencyLimiter) WaitIdle(ctx context.Context) {
	for l.semaphore.CountHeld() > 0 {
		select {
		case <-l.released:
		case <-ctx.Done():
			return
		}
	}
}

// RequestPermit is the permit of one request. It is held while at least one
// subtask of the request executes, and shared by all of them.
type RequestPermit struct {
	limiter *ConcurrencyLimiter
	owner   quota.Owner

	mu       sync.Mutex // not held while a subtask waits for the permit
	active   int        // subtasks that execute, or wait in Acquire
	acquired bool
	// acquiring is not nil while a subtask waits for the permit, and closed when its
	// wait has ended, with or without the permit.
	acquiring chan struct{}
}

// Acquire counts one more executing subtask and, unless the request has a permit,
// waits for it. If ctx ends first, the subtask proceeds without a permit, because all
// that is left to do is to record its end.
func (p *RequestPermit) Acquire(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active++
	for !p.acquired && p.acquiring != nil {
		if !p.await(ctx, p.acquiring) {
			return
		}
	}
	if p.acquired {
		return
	}
	acquiring := make(chan struct{})
	p.acquiring = acquiring
	p.mu.Unlock()
	acquired := p.limiter.semaphore.Acquire(ctx, p.owner)
	p.mu.Lock()
	p.acquired, p.acquiring = acquired, nil
	close(acquiring)
}

// await waits until ch is closed, and reports whether it was before ctx ended. The
// caller holds mu, which is unlocked meanwhile.
func (p *RequestPermit) await(ctx context.Context, ch <-chan struct{}) bool {
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-ch:
		return true
	case <-ctx.Done():
		return false
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
	p.limiter.semaphore.Release()
	p.acquired = false
	select {
	case p.limiter.released <- struct{}{}:
	default: // a signal is pending already
	}
}
