package events

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

const (
	maxMemoryLog  = 256 << 20 // bytes
	eventOverhead = 256       // bytes that an event takes beside its data
	// expiryInterval is how long an expired event may stay in an idle log.
	expiryInterval = time.Minute
	followBatch    = 256
)

// memoryLog is the log of a process that shares its events with no other one. It is safe
// for concurrent use. Its first sequence is the time in microseconds, so that a sequence
// of an earlier process is recognised.
type memoryLog struct {
	now   func() time.Time
	limit int // bytes

	mu        sync.Mutex
	first     uint64          // sequence of messages[0]
	messages  []store.Message // without gaps; a removed one has no Seq
	bySubject map[string][]uint64
	bytes     int
	followers map[chan struct{}]struct{} // capacity 1: there is a new message
}

func newMemoryLog(limit int, now func() time.Time) *memoryLog {
	return &memoryLog{
		now: now, limit: limit, first: uint64(now().UnixMicro()),
		bySubject: map[string][]uint64{}, followers: map[chan struct{}]struct{}{},
	}
}

func sizeOf(m *store.Message) int { return len(m.Data) + len(m.Subject) + eventOverhead }

// Append implements eventLog. The log keeps the data.
func (l *memoryLog) Append(_ context.Context, subject string, data []byte, _ store.AppendOptions) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := store.Message{Seq: l.first + uint64(len(l.messages)), At: l.now(), Subject: subject, Data: data}
	l.messages = append(l.messages, m)
	l.bySubject[subject] = append(l.bySubject[subject], m.Seq)
	l.bytes += sizeOf(&m)
	l.evict()
	for wake := range l.followers {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	return m.Seq, nil
}

// evict removes the oldest messages: those that are too old, and those beyond the limit.
// The caller holds l.mu.
func (l *memoryLog) evict() {
	oldest := l.now().Add(-maxAge)
	for len(l.messages) > 0 {
		m := &l.messages[0]
		if m.Seq != 0 && l.bytes <= l.limit && !m.At.Before(oldest) {
			return
		}
		l.removeFirst()
	}
}

func (l *memoryLog) removeFirst() {
	if m := &l.messages[0]; m.Seq != 0 {
		l.bytes -= sizeOf(m)
		if rest := l.bySubject[m.Subject][1:]; len(rest) > 0 {
			l.bySubject[m.Subject] = rest
		} else {
			delete(l.bySubject, m.Subject)
		}
	}
	l.messages[0] = store.Message{}
	l.messages = l.messages[1:]
	l.first++
}

// next returns the first message of a subject at or after a sequence. The caller holds
// l.mu.
func (l *memoryLog) next(subject string, from uint64) (store.Message, bool) {
	if subject != allSubjects {
		seqs := l.bySubject[subject]
		i, _ := slices.BinarySearch(seqs, from)
		if i == len(seqs) {
			return store.Message{}, false
		}
		return l.messages[seqs[i]-l.first], true
	}
	for from = max(from, l.first); from < l.first+uint64(len(l.messages)); from++ {
		if m := l.messages[from-l.first]; m.Seq != 0 {
			return m, true
		}
	}
	return store.Message{}, false
}

// Next implements eventLog.
func (l *memoryLog) Next(_ context.Context, subject string, from uint64) (store.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evict()
	m, ok := l.next(subject, from)
	if !ok {
		return store.Message{}, store.ErrNotFound
	}
	return m, nil
}

// Last implements eventLog.
func (l *memoryLog) Last(_ context.Context, subject string) (store.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evict()
	if seqs := l.bySubject[subject]; len(seqs) > 0 {
		return l.messages[seqs[len(seqs)-1]-l.first], nil
	}
	if subject == allSubjects {
		for _, m := range slices.Backward(l.messages) {
			if m.Seq != 0 {
				return m, nil
			}
		}
	}
	return store.Message{}, store.ErrNotFound
}

// Read implements eventLog.
func (l *memoryLog) Read(ctx context.Context, from store.ReadFrom, fn func(store.Message) error) error {
	for seq := from.Seq; ctx.Err() == nil; {
		m, err := l.Next(ctx, from.Subject, seq)
		if err != nil {
			return nil //nolint:nilerr // the end
		}
		if err := fn(m); err != nil {
			return ignoreStop(err)
		}
		seq = m.Seq + 1
	}
	return ctx.Err()
}

// ignoreStop returns the error of a callback, or nil for store.ErrStop.
func ignoreStop(err error) error {
	if errors.Is(err, store.ErrStop) {
		return nil
	}
	return err
}

// Follow implements eventLog.
func (l *memoryLog) Follow(ctx context.Context, from uint64, fn func(store.Message) error) error {
	wake := make(chan struct{}, 1)
	l.mu.Lock()
	l.followers[wake] = struct{}{}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.followers, wake)
	}()
	expiry := time.NewTicker(expiryInterval)
	defer expiry.Stop()
	for {
		batch := l.batchFrom(from)
		for _, m := range batch {
			if err := fn(m); err != nil {
				return ignoreStop(err)
			}
			from = m.Seq + 1
		}
		if len(batch) == followBatch && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case <-expiry.C:
		}
	}
}

// batchFrom returns the next messages from a sequence on, at most followBatch.
func (l *memoryLog) batchFrom(from uint64) (batch []store.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evict()
	for len(batch) < followBatch {
		m, ok := l.next(allSubjects, from)
		if !ok {
			break
		}
		batch, from = append(batch, m), m.Seq+1
	}
	return batch
}

// Purge implements eventLog.
func (l *memoryLog) Purge(_ context.Context, subject string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seq := range l.bySubject[subject] {
		m := &l.messages[seq-l.first]
		l.bytes -= sizeOf(m)
		*m = store.Message{}
	}
	delete(l.bySubject, subject)
	l.evict()
	return nil
}

// Info implements eventLog.
func (l *memoryLog) Info(context.Context) (store.LogInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evict() // so that the first message is not a removed one
	return store.LogInfo{
		First: l.first, Last: l.first + uint64(len(l.messages)) - 1,
		Msgs: uint64(len(l.messages)), Bytes: uint64(l.bytes), MaxBytes: int64(l.limit),
	}, nil
}

// Lifetime implements eventLog: the messages stay as long as the process.
func (l *memoryLog) Lifetime() context.Context { return context.Background() }
