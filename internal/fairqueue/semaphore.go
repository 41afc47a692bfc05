// Package fairqueue divides permits between owners, for example tenants. If none is
// free, the owners that wait get one in turn (round robin), and the requests of one
// owner in the order of their arrival. An owner with many waiting requests therefore
// delays another one by at most one request per permit.
//
//	permits := fairqueue.New[string](4)
//	if permits.Acquire(ctx, tenant) {
//		defer permits.Release()
//	}
//
// It does not know what a permit is for, and does not preempt its holder.
package fairqueue

import (
	"context"
	"sync"
)

// Semaphore is a counting semaphore with one queue per owner. Its methods may be called
// from any goroutine.
type Semaphore[Owner comparable] struct {
	mu     sync.Mutex
	free   int
	held   int
	queues map[Owner][]*waiter // by owner, without empty ones
	turns  []Owner             // owners with a queue; the first is next
}

// waiter is one waiting call of Acquire. The semaphore's mutex guards its fields.
type waiter struct {
	ready   chan struct{} // closed when granted
	granted bool
}

// New returns a semaphore with this many permits.
func New[Owner comparable](permits int) *Semaphore[Owner] {
	return &Semaphore[Owner]{free: permits, queues: map[Owner][]*waiter{}}
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
	if len(s.queues[owner]) == 0 {
		s.turns = append(s.turns, owner)
	}
	s.queues[owner] = append(s.queues[owner], w)
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
	if w.granted {
		return true
	}
	queue := s.queues[owner]
	for i := range queue {
		if queue[i] == w {
			s.setQueue(owner, append(queue[:i:i], queue[i+1:]...))
			break
		}
	}
	return false
}

// setQueue replaces the queue of an owner. Without waiters it has no turn.
func (s *Semaphore[Owner]) setQueue(owner Owner, queue []*waiter) {
	if len(queue) > 0 {
		s.queues[owner] = queue
		return
	}
	delete(s.queues, owner)
	for i := range s.turns {
		if s.turns[i] == owner {
			s.turns = append(s.turns[:i], s.turns[i+1:]...)
			return
		}
	}
}

// Release returns a permit, and passes it on to the owner whose turn it is.
func (s *Semaphore[Owner]) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		s.free++
		s.held--
		return
	}
	owner := s.turns[0]
	queue := s.queues[owner]
	first := queue[0]
	s.setQueue(owner, queue[1:])
	if len(queue) > 1 { // behind all others
		s.turns = append(s.turns[1:], owner)
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
