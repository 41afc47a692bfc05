package events

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// queueLength is the number of events queued for one reader, before it must read the
// log itself.
const queueLength = 32

// Read calls fn for the events of a request after a sequence (0 = all), first the stored
// ones, then each new one, in order, without gaps and duplicates. It returns nil after
// the final event, even if that is before the sequence; ErrGone if events after the
// sequence are not stored any more, there is no event of the request, or the request has
// ended without a final event; the error of fn; or that of ctx. Events are shared
// between readers and must not be changed.
func (s *Stream) Read(ctx context.Context, requestID string, after uint64, fn func(seq uint64, ev *contract.Event) error) error {
	return s.readEvents(ctx, requestID, after, fn, false)
}

// Follow is Read for a request that is known to be running: it is no error if there
// is no event yet. The sequence is a Position from before the request's state was
// read.
func (s *Stream) Follow(ctx context.Context, requestID string, after uint64, fn func(seq uint64, ev *contract.Event) error) error {
	return s.readEvents(ctx, requestID, after, fn, true)
}

func (s *Stream) readEvents(ctx context.Context, requestID string, after uint64, fn func(uint64, *contract.Event) error, underWay bool) error {
	if !store.ValidID(requestID) {
		return ErrGone
	}
	// Register the queue before reading the log, so that no event is missed.
	r := &reader{stream: s, requestID: requestID, subject: prefix + requestID, last: after, inProgress: underWay, fn: fn, wake: make(chan struct{}, 1)}
	s.addReader(requestID, r)
	defer s.removeReader(requestID, r)

	err := r.readLog(ctx)
	if err == nil && r.last == after && !underWay {
		err = r.checkExpected(ctx)
	}
	for err == nil {
		err = r.readLive(ctx) // returns when the queue overflows
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

// Signals that end one phase of a reader.
var (
	errFinal    = errors.New("final event")
	errOverflow = errors.New("queue overflow")
)

// reader is one call of Read.
type reader struct {
	stream     *Stream
	requestID  string
	subject    string
	inProgress bool   // the request is running, so missing events are no error
	last       uint64 // sequence of the last event for fn
	fn         func(uint64, *contract.Event) error

	wake chan struct{} // capacity 1: the state has changed

	mu         sync.Mutex
	queue      []queuedEvent
	overflowed bool // the log has events that the queue has not
	eventLost  bool // an event is lost
}

// enqueue adds an event to the queue. It never blocks.
func (r *reader) enqueue(it queuedEvent) {
	r.updateState(func() {
		if len(r.queue) < queueLength && !r.overflowed {
			r.queue = append(r.queue, it)
		} else {
			r.queue, r.overflowed = nil, true
		}
	})
}

// markOverflow makes the reader read the log.
func (r *reader) markOverflow() { r.updateState(func() { r.queue, r.overflowed = nil, true }) }

// markLost makes the reader return ErrGone.
func (r *reader) markLost() { r.updateState(func() { r.eventLost = true }) }

func (r *reader) updateState(change func()) {
	r.mu.Lock()
	change()
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takeQueue empties the queue and returns its events.
func (r *reader) takeQueue() ([]queuedEvent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	items, overrun := r.queue, r.overflowed
	r.queue, r.overflowed = nil, false
	switch {
	case r.eventLost:
		return items, ErrGone
	case overrun:
		return nil, errOverflow
	}
	return items, nil
}

// readLive emits queued events until there is an error. If none arrives for a while, the
// request may have ended without a final event, for example because its process was
// killed, or the store did not accept the event.
func (r *reader) readLive(ctx context.Context) error {
	timer := time.NewTimer(r.stream.checkInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if r.stream.cfg.HasEnded(ctx, r.requestID) {
				return r.readEnd(ctx)
			}
		case <-r.wake:
		}
		timer.Reset(r.stream.checkInterval)
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

// readEnd emits the events of the log that the queue has not, because the request has
// ended. It returns ErrGone if the final event is not among them.
func (r *reader) readEnd(ctx context.Context) error {
	if err := r.readLog(ctx); err != nil {
		return err
	}
	return ErrGone
}

// emitEvent calls fn with an event that fn has not had.
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

// checkExpected returns an error if no event can follow for a reader without stored
// events.
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
		return ErrGone // a sequence of another engine
	}
	ev, err := decodeEvent(m)
	if err == nil && ev.Type == contract.EventFinal && m.Seq <= r.last {
		return errFinal
	}
	return err
}

// readLog emits the events of the log after the last one.
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

// fetchNext returns the next events of the log. A semaphore bounds concurrent reads.
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

// fetchEvents reads the next events from the log, at most queueLength.
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

// checkComplete returns ErrGone if an event may be missing before or among the
// items. It checks after they were read: if the log still reaches back far enough
// now, it did so then.
func (r *reader) checkComplete(ctx context.Context, items []queuedEvent) error {
	from := r.last
	if from == 0 && !r.inProgress {
		// A complete sequence starts with the decision, or is only the final event.
		if len(items) == 0 || items[0].ev.Type != contract.EventDecision && items[0].ev.Type != contract.EventFinal {
			return ErrGone
		}
	}
	if from == 0 && len(items) > 0 {
		from = items[0].seq
	}
	// Log.Info would do as well, but the engine answers such requests one at a time,
	// and many readers may come at once.
	oldest, err := r.stream.log.Next(ctx, allSubjects, 1)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if r.inProgress && len(items) == 0 && (from == 0 || from >= r.stream.began.Load()) {
			return nil
		}
		return ErrGone // or a position in an earlier log
	case err != nil:
		return err
	}
	// The dropped events may be those of other requests, but that is not known any
	// more.
	if from > 0 && from+1 < oldest.Seq {
		return ErrGone
	}
	return nil
}
