package store

import (
	"context"
	"sync"
)

// lastWrite caches the newest message of the subject of a log that was last written with an
// expected sequence. All writes of an embedded store come from this process, so the
// sequence can be compared here. The engine would read the message to compare it, and
// keeps each block of messages in memory for ten seconds after it was read: all that was
// written in that time, instead of one block.
type lastWrite struct {
	shared bool // other processes write to the store: nothing is known

	// order is held to write with an expected sequence, and shared by other changes of
	// the known message. Changes that leave it alone do not wait, because a removal may
	// take much longer than a write.
	order sync.RWMutex

	mu       sync.Mutex
	newest   newestMessage  // zero = nothing is known
	changing map[string]int // patterns of other subjects that are changed now
	changed  uint64         // how many such changes have ended
}

// newestMessage is the newest message of a subject.
type newestMessage struct {
	subject  string
	seq      uint64
	restarts int64 // of the engine, which may lose the end of a log
}

// lastWriteOf returns the state of a log, which all users of the log share.
func lastWriteOf(s *Store, log string) *lastWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastWrites[log] == nil {
		s.lastWrites[log] = &lastWrite{shared: s.cfg.URL != "", changing: map[string]int{}}
	}
	return s.lastWrites[log]
}

// append stores a message of a log.
func (l *lastWrite) append(ctx context.Context, s *Store, w pendingWrite) (seq uint64, err error) {
	if l.shared || w.expectLast == nil || w.expectFor != "" {
		err = l.change(w.subject, func() error {
			seq, err = s.publish(ctx, w)
			return err
		})
		return seq, err
	}
	l.order.Lock()
	defer l.order.Unlock()
	before := newestMessage{w.subject, *w.expectLast, s.engine.restarts.Load()}
	isKnown, changed := l.compare(before)
	if isKnown {
		w.expectationHolds = func() bool { return s.engine.restarts.Load() == before.restarts }
	}
	seq, err = s.publish(ctx, w)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest = newestMessage{w.subject, seq, before.restarts}
	if err != nil || !isKnown && (l.changed != changed || l.isChanging(w.subject)) {
		l.newest = newestMessage{}
	}
	return seq, err
}

// compare reports whether this is the known message, and how many changes of others have
// ended.
func (l *lastWrite) compare(message newestMessage) (isKnown bool, changed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest == message, l.changed
}

// isChanging reports whether a change in progress may concern the subject.
func (l *lastWrite) isChanging(subject string) bool {
	for pattern := range l.changing {
		if subjectMatches(pattern, subject) {
			return true
		}
	}
	return false
}

// change calls a function that adds or removes messages of the subjects that match a
// pattern, without an expected sequence.
func (l *lastWrite) change(pattern string, fn func() error) error {
	if !l.beginChange(pattern) {
		defer l.endChange(pattern)
		return fn()
	}
	return l.changeKnown(fn)
}

// beginChange reports whether the change may concern the known message. Otherwise
// endChange must be called.
func (l *lastWrite) beginChange(pattern string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newest.subject != "" && subjectMatches(pattern, l.newest.subject) {
		return true
	}
	l.changing[pattern]++
	return false
}

func (l *lastWrite) endChange(pattern string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed++
	if l.changing[pattern]--; l.changing[pattern] == 0 {
		delete(l.changing, pattern)
	}
}

// removeBefore calls a function that removes messages before a sequence.
func (l *lastWrite) removeBefore(seq uint64, fn func() error) error {
	if l.isKnownFrom(seq) { // and a message that is written meanwhile is newer
		return fn()
	}
	return l.changeKnown(fn)
}

// isKnownFrom reports whether the known message has the sequence or a later one.
func (l *lastWrite) isKnownFrom(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest.subject != "" && l.newest.seq >= seq
}

// changeKnown calls a function that may change the known message.
func (l *lastWrite) changeKnown(fn func() error) error {
	l.order.RLock()
	defer l.order.RUnlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.newest = newestMessage{}
	}()
	return fn()
}
