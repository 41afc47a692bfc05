package httptarget

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

const (
	maxStops    = 64 // on their way at the same time
	maxWaiting  = 4096
	stopTimeout = 2 * time.Second
)

// stopper tells agents to stop, in the background and as well as it can:
// nobody's answer waits for it.
type stopper struct {
	group *run.Group

	mu      sync.Mutex
	sending int     // at most maxStops
	waiting []*stop // for one of those, oldest first
	closed  bool
}

// stop is one agent to be told, on a connection that may lead to it.
type stop struct {
	transport http.RoundTripper
	request   *http.Request
}

func newStopper() *stopper {
	return &stopper{group: run.New(context.Background())} // outlives the request it is about
}

// tell sends the request unless too many are waiting: an agent that does not
// hear of it stops at the deadline.
func (s *stopper) tell(transport http.RoundTripper, req *http.Request) {
	next := &stop{transport, req}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case s.sending < maxStops:
		s.sending++
		s.group.Go("stop tasks", func(ctx context.Context) error {
			for ; next != nil; next = s.next() {
				next.send(ctx)
			}
			return nil
		})
	case len(s.waiting) < maxWaiting:
		s.waiting = append(s.waiting, next)
	}
}

func (s *stop) send(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if resp, err := s.transport.RoundTrip(s.request.WithContext(ctx)); err == nil {
		_ = resp.Body.Close() // whatever it says
	}
}

// next returns the stop that has waited longest; with nil the sender ends.
func (s *stopper) next() *stop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.sending--
		return nil
	}
	oldest := s.waiting[0]
	s.waiting[0] = nil // append reuses the array only from here on
	s.waiting = s.waiting[1:]
	return oldest
}

// close drops what is waiting and returns when nothing is on its way.
func (s *stopper) close() {
	s.mu.Lock()
	s.closed, s.waiting = true, nil
	s.mu.Unlock()
	_ = s.group.Wait() // they return nil
}
