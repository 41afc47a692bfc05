package store

import (
	"context"
	"sync"
)

// lastWrite is the newest message of the subject of a log that was last written with an
// expected sequence. All writes of an embedded store come from this process, so the
// sequence can be compared here. The engine would read the message to compare it, and
// keeps each block of messages in memory for ten seconds after it was read: all that was
// written in that time, instead of one block.
type lastWrite struct {
	shared bool // other processes write to the store: nothing is known

	// order is held to write with an expected sequence, and shared by all other changes
	// of the log.
	order sync.RWMutex

	mu       sync.Mutex
	subject  string // "" = nothing is known
	seq      uint64
	restarts int64 // of the engine, which may lose the end of a log
}

// lastWriteOf returns the state of a log, which all users of the log share.
func lastWriteOf(s *Store, log string) *lastWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastWrites[log] == nil {
		s.lastWrites[log] = &lastWrite{shared: s.cfg.URL != ""}
	}
	return s.lastWrites[log]
}

// append stores a message of a log.
func (l *lastWrite) append(ctx context.Context, s *Store, w pendingWrite) (uint64, error) {
	if l.shared || w.expectLast == nil || w.expectFor != "" {
		l.order.RLock()
		defer l.order.RUnlock()
		defer l.forget(w.subject)
		return s.publish(ctx, w)
	}
	l.order.Lock()
	defer l.order.Unlock()
	restarts := s.engine.restarts.Load()
	if l.is(w.subject, *w.expectLast, restarts) {
		w.expectationHolds = func() bool { return s.engine.restarts.Load() == restarts }
	}
	seq, err := s.publish(ctx, w)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subject, l.seq, l.restarts = w.subject, seq, restarts; err != nil {
		l.subject = ""
	}
	return seq, err
}

// is reports whether the newest message of a subject is known to have the sequence.
func (l *lastWrite) is(subject string, seq uint64, restarts int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subject == subject && l.seq == seq && l.restarts == restarts
}

// forget is called after a write to a subject without an expected sequence.
func (l *lastWrite) forget(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subject == subject {
		l.subject = ""
	}
}

// remove calls a function that removes messages of the log.
func (l *lastWrite) remove(fn func() error) error {
	l.order.RLock()
	defer l.order.RUnlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subject = ""
	}()
	return fn()
}
