// Package fairqueue serves owners, for example tenants, in turn (round robin), and the
// requests of one owner in the order of their arrival.
//
// A Semaphore divides permits. If none is free, the owners that wait get one in turn. An
// owner with many waiting requests therefore delays another one by at most one request per
// permit.
//
//	permits := fairqueue.New[string](4)
//	if permits.Acquire(ctx, tenant) {
//		defer permits.Release()
//	}
//
// It does not know what a permit is for, and does not preempt its holder. A BatchQueue
// passes items on to one consumer, which takes them in batches. A Queue is the order alone.
package fairqueue

import (
	"context"
	"sync"
)

// Semaphore is a counting semaphore with one queue per owner. Its methods may be called
// from any goroutine.
type Semaphore[Owner comparable] struct {
	mu      sync.Mutex
	free    int
	held    int
	waiters Queue[Owner, *waiter]
}

// waiter is one waiting call of Acquire. The semaphore's mutex guards its fields.
type waiter struct {
	ready   chan struct{} // closed when granted
	granted bool
}

// New returns a semaphore with this many permits.
func New[Owner comparable](permits int) *Semaphore[Owner] {
	return &Semaphore[Owner]{free: permits}
}

// Acquire waits for a permit, and reports whether it got one before ctx ended. A free
// permit is acquired even if ctx has ended.
func (s *Semaphore[Owner]) Acquire(ctx context.Context, owner Owner) bool {
	s.mu.Lock()
	if s.free > 0 { // then no owner waits
		s.free--
		s.held++
		s.mu.Unlock()
		return true
	}
	w := &waiter{ready: make(chan struct{})}
	s.waiters.Push(owner, w)
	s.mu.Unlock()
	select {
	case <-w.ready:
		return true
	case <-ctx.Done():
		return s.abandon(owner, w)
	}
}

// abandon removes a waiter whose context has ended, and reports whether it had got a
// permit before.
func (s *Semaphore[Owner]) abandon(owner Owner, w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.granted {
		s.waiters.Remove(owner, w)
	}
	return w.granted
}

// Release returns a permit, and passes it on to the owner whose turn it is.
func (s *Semaphore[Owner]) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, ok := s.waiters.Pop()
	if !ok {
		s.free++
		s.held--
		return
	}
	first.granted = true
	close(first.ready)
}

// CountHeld returns how many permits are held.
func (s *Semaphore[Owner]) CountHeld() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}
