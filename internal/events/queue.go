package events

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
)

const (
	// maxQueued and maxQueuedBytes bound the events that wait to be appended to the
	// log. Further ones are dropped: a request must not wait for its events.
	maxQueued      = 4096
	maxQueuedBytes = 16 << 20

	// appendTimeout bounds one append. It is short, so that a log that is away does
	// not fill the queue for longer than it is away.
	appendTimeout = 2 * time.Second
)

// publishQueue holds encoded events between the requests and the log, in order.
type publishQueue struct {
	wake chan struct{} // capacity 1: the queue is not empty

	appending sync.Mutex // held during each append

	mu      sync.Mutex
	pending []encodedEvent
	bytes   int
	dropped int   // since the log accepted the latest event
	err     error // of the latest append; nil if it succeeded
}

// encodedEvent is an event as the log stores it.
type encodedEvent struct {
	requestID string
	data      []byte
}

func newPublishQueue() *publishQueue { return &publishQueue{wake: make(chan struct{}, 1)} }

// add appends an event to the queue, and reports whether there was space.
func (q *publishQueue) add(e encodedEvent) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == maxQueued || q.bytes+len(e.data) > maxQueuedBytes {
		q.dropped++
		return false
	}
	q.pending = append(q.pending, e)
	q.bytes += len(e.data)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// take removes the oldest event. It reports false if there is none.
func (q *publishQueue) take() (encodedEvent, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		return encodedEvent{}, false
	}
	e := q.pending[0]
	q.pending[0] = encodedEvent{}
	q.pending = q.pending[1:]
	q.bytes -= len(e.data)
	return e, true
}

// remove removes the events of a request. It waits for the append in progress first,
// which may be that of one of them.
func (q *publishQueue) remove(requestID string) {
	q.appending.Lock()
	defer q.appending.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = slices.DeleteFunc(q.pending, func(e encodedEvent) bool {
		if e.requestID != requestID {
			return false
		}
		q.bytes -= len(e.data)
		return true
	})
}

// setResult records the result of an append. It returns how many events were dropped
// since the log accepted one, and the error of the append before.
func (q *publishQueue) setResult(err error) (dropped int, before error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, q.err = q.err, err
	if err != nil {
		q.dropped++
		return q.dropped, before
	}
	dropped, q.dropped = q.dropped, 0
	return dropped, before
}

// Enqueue sends an event to the readers of its request, current and future, in the
// background: it never waits. If the log does not
// accept the event in time, or too many events wait already, the event is dropped, and
// the readers of its request get ErrGone.
func (s *Stream) Enqueue(ev *contract.Event) {
	data, err := encodeEvent(ev)
	if err != nil || !s.queue.add(encodedEvent{requestID: ev.RequestID, data: data}) {
		s.markReadersLost(ev.RequestID)
	}
}

// Err returns why the latest event was dropped; nil if it was not.
func (s *Stream) Err() error {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.err
}

// publishQueued appends queued events to the log until ctx ends.
func (s *Stream) publishQueued(ctx context.Context) {
	for {
		for s.publishNext(ctx) {
		}
		select {
		case <-ctx.Done():
			return
		case <-s.queue.wake:
		}
	}
}

// publishNext appends the oldest queued event. It reports false if there is none.
func (s *Stream) publishNext(ctx context.Context) bool {
	s.queue.appending.Lock()
	defer s.queue.appending.Unlock()
	e, ok := s.queue.take()
	if !ok || ctx.Err() != nil {
		return false
	}
	appendCtx, cancel := context.WithTimeout(ctx, s.appendTimeout)
	defer cancel()
	err := s.appendEncoded(appendCtx, e)
	if err != nil && ctx.Err() != nil {
		return false // the process stops
	}
	if err != nil {
		s.markReadersLost(e.requestID)
	}
	switch dropped, before := s.queue.setResult(err); {
	case err != nil && before == nil:
		s.cfg.Logger.WarnContext(ctx, "events cannot be published and are dropped until they can; requests are not affected", "error", err)
	case err == nil && before != nil:
		s.cfg.Logger.InfoContext(ctx, "events are published again", "dropped", dropped)
	}
	return true
}
