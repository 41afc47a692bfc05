package events

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// queueLength is how many events wait for one reader before it has to fetch
// them from the log itself.
const queueLength = 32

// Read calls fn for the events of a request that come after a sequence (0 = all):
// first those that are kept, then those that come, in their order, none left out
// and none twice. It returns nil after the final event, also where that came before
// the sequence; ErrGone when events after the sequence are not kept any more, or
// there is nothing of this request at all; fn's error; else ctx's. Events are shared
// with other readers and must not be changed.
func (s *Stream) Read(ctx context.Context, requestID string, after uint64, fn func(seq uint64, ev *contract.Event) error) error {
	return s.readEvents(ctx, requestID, after, fn, false)
}

// Follow is Read for who knows that the request is under way: that there is nothing
// of it yet is no error. The sequence is a Position from before the request was
// looked at.
func (s *Stream) Follow(ctx context.Context, requestID string, after uint64, fn func(seq uint64, ev *contract.Event) error) error {
	return s.readEvents(ctx, requestID, after, fn, true)
}

func (s *Stream) readEvents(ctx context.Context, requestID string, after uint64, fn func(uint64, *contract.Event) error, underWay bool) error {
	if !validID(requestID) {
		return ErrGone
	}
	// The queue opens before the log is read: between the two nothing falls.
	r := &reader{stream: s, subject: prefix + requestID, last: after, inProgress: underWay, fn: fn, wake: make(chan struct{}, 1)}
	s.addReader(requestID, r)
	defer s.removeReader(requestID, r)

	err := r.readLog(ctx)
	if err == nil && r.last == after && !underWay {
		err = r.checkExpected(ctx)
	}
	for err == nil {
		err = r.readLive(ctx) // until the queue overflows
		if errors.Is(err, errOverflow) {
			err = r.readLog(ctx)
		}
	}
	if errors.Is(err, errFinal) {
		return nil
	}
	return err
}

func (s *Stream) addReader(requestID string, r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[requestID] = append(s.readers[requestID], r)
}

func (s *Stream) removeReader(requestID string, r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	readers := slices.DeleteFunc(s.readers[requestID], func(other *reader) bool { return other == r })
	if len(readers) == 0 {
		delete(s.readers, requestID)
	} else {
		s.readers[requestID] = readers
	}
}

// How a reader goes on.
var (
	errFinal    = errors.New("that was the final event")
	errOverflow = errors.New("the queue ran over")
)

// reader is one call of Read.
type reader struct {
	stream     *Stream
	subject    string
	inProgress bool   // that there is nothing yet says nothing
	last       uint64 // sequence of what fn had last
	fn         func(uint64, *contract.Event) error

	wake chan struct{} // holds one token when there is something to take

	mu         sync.Mutex
	queue      []queuedEvent
	overflowed bool // something is in the log that is not in the queue
	lost       bool // something is nowhere
}

// enqueue queues an event. It never blocks.
func (r *reader) enqueue(it queuedEvent) {
	r.updateState(func() {
		if len(r.queue) < queueLength && !r.overflowed {
			r.queue = append(r.queue, it)
		} else {
			r.queue, r.overflowed = nil, true
		}
	})
}

// markOverflow makes the reader look into the log.
func (r *reader) markOverflow() { r.updateState(func() { r.queue, r.overflowed = nil, true }) }

// markLost makes the reader give up.
func (r *reader) markLost() { r.updateState(func() { r.lost = true }) }

func (r *reader) updateState(change func()) {
	r.mu.Lock()
	change()
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takeQueue empties the queue.
func (r *reader) takeQueue() ([]queuedEvent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	items, overrun := r.queue, r.overflowed
	r.queue, r.overflowed = nil, false
	switch {
	case r.lost:
		return items, ErrGone
	case overrun:
		return nil, errOverflow
	}
	return items, nil
}

// readLive hands on what comes, until there is an error.
func (r *reader) readLive(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		}
		items, end := r.takeQueue()
		for _, it := range items {
			if err := r.emitEvent(it); err != nil {
				return err
			}
		}
		if end != nil {
			return end
		}
	}
}

// emitEvent gives fn an event it has not had.
func (r *reader) emitEvent(it queuedEvent) error {
	if it.seq <= r.last {
		return nil
	}
	if err := r.fn(it.seq, it.ev); err != nil {
		return err
	}
	r.last = it.seq
	if it.ev.Type == contract.EventFinal {
		return errFinal
	}
	return nil
}

// checkExpected finds out whether anything can come for a reader for whom nothing is kept.
func (r *reader) checkExpected(ctx context.Context) error {
	m, err := r.stream.log.Last(ctx, r.subject)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrGone
	case err != nil:
		return err
	}
	newest, err := r.stream.Position(ctx)
	if err != nil {
		return err
	}
	if r.last > newest {
		return ErrGone // a number of another life
	}
	ev, err := decodeEvent(m)
	if err == nil && ev.Type == contract.EventFinal && m.Seq <= r.last {
		return errFinal
	}
	return err
}

// readLog hands on what the log has after the last event.
func (r *reader) readLog(ctx context.Context) error {
	for {
		items, err := r.fetchNext(ctx)
		if err != nil {
			return err
		}
		for _, it := range items {
			if err := r.emitEvent(it); err != nil {
				return err
			}
		}
		if len(items) < queueLength {
			return nil
		}
	}
}

// fetchNext returns the next events of the log, when its turn comes.
func (r *reader) fetchNext(ctx context.Context) ([]queuedEvent, error) {
	select {
	case r.stream.lookups <- struct{}{}:
		defer func() { <-r.stream.lookups }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	items, err := r.fetchEvents(ctx)
	if err != nil {
		return nil, err
	}
	return items, r.checkComplete(ctx, items)
}

// fetchEvents reads the next events from the log, as many as a queue holds.
func (r *reader) fetchEvents(ctx context.Context) ([]queuedEvent, error) {
	var items []queuedEvent
	err := r.stream.log.Read(ctx, store.ReadFrom{Seq: r.last + 1, Subject: r.subject}, func(m store.Message) error {
		ev, err := decodeEvent(m)
		if err != nil {
			return err
		}
		if items = append(items, queuedEvent{seq: m.Seq, ev: ev}); len(items) == queueLength {
			return store.ErrStop
		}
		return nil
	})
	return items, err
}

// checkComplete returns ErrGone when something may be missing between the last event and
// the items, or among them. It looks after they were fetched: what the log still
// reaches back to now it reached back to then.
func (r *reader) checkComplete(ctx context.Context, items []queuedEvent) error {
	from := r.last
	if from == 0 && !r.inProgress {
		// A whole story begins with the decision, or is the final event alone.
		if len(items) == 0 || items[0].ev.Type != contract.EventDecision && items[0].ev.Type != contract.EventFinal {
			return ErrGone
		}
	}
	if from == 0 && len(items) > 0 {
		from = items[0].seq
	}
	// A question to the engine's API would be as good, but that answers one after
	// the other, and readers come in crowds.
	oldest, err := r.stream.log.Next(ctx, allSubjects, 1)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if r.inProgress && len(items) == 0 {
			return nil
		}
		return ErrGone
	case err != nil:
		return err
	}
	// What is not kept may have been another request's. Nobody knows any more.
	if from > 0 && from+1 < oldest.Seq {
		return ErrGone
	}
	return nil
}
