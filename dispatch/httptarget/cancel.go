package httptarget

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

const (
	maxCancelSenders = 64
	maxCancelQueue   = 4096
	cancelTimeout    = 2 * time.Second
)

// cancelSender sends cancel requests to agents in the background. Delivery is
// best effort: an agent that does not receive one stops at the deadline.
type cancelSender struct {
	group *run.Group

	mu      sync.Mutex
	senders int             // at most maxCancelSenders
	queue   []cancelRequest // oldest first
	closed  bool
}

type cancelRequest struct {
	transport http.RoundTripper
	request   *http.Request
}

func newCancelSender() *cancelSender {
	return &cancelSender{group: run.New(context.Background())} // outlives the request of the caller
}

// enqueue sends the request when a sender is free, or drops it if the queue is
// full.
func (s *cancelSender) enqueue(transport http.RoundTripper, req *http.Request) {
	next := cancelRequest{transport, req}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case s.senders < maxCancelSenders:
		s.senders++
		s.group.Go("cancel tasks", func(ctx context.Context) error {
			for ok := true; ok; next, ok = s.dequeue() {
				next.send(ctx)
			}
			return nil
		})
	case len(s.queue) < maxCancelQueue:
		s.queue = append(s.queue, next)
	}
}

func (r cancelRequest) send(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	if resp, err := r.transport.RoundTrip(r.request.WithContext(ctx)); err == nil {
		_ = resp.Body.Close() // the reply does not matter
	}
}

// dequeue returns the oldest request. If there is none, the sender must end.
func (s *cancelSender) dequeue() (oldest cancelRequest, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.senders--
		return cancelRequest{}, false
	}
	oldest = s.queue[0]
	s.queue[0] = cancelRequest{} // release the memory before append copies the slice
	s.queue = s.queue[1:]
	return oldest, true
}

// closeAndWait drops the queue and waits for the requests in flight.
func (s *cancelSender) closeAndWait() {
	s.mu.Lock()
	s.closed, s.queue = true, nil
	s.mu.Unlock()
	_ = s.group.Wait() // the senders return nil
}
