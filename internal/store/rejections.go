package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// rejections are the last writes that full logs and buckets have rejected. Status
// reports them, because a store with one full part does not work, even if the others
// accept writes.
type rejections struct {
	mu     sync.Mutex
	byName map[string]rejection // by stream
}

// rejection is a write for which there was no space.
type rejection struct {
	name    string   // of the log or bucket
	streams []string // streams with a common limit
	limit   int64    // -1 = only that of the store
	size    int64
	err     error
}

// messageOverhead estimates the size of a message without subject and data.
const messageOverhead = 256

// record stores the result of a write.
func (r *rejections) record(stream string, f rejection, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, ErrFull):
		if r.byName == nil {
			r.byName = map[string]rejection{}
		}
		f.err = err
		r.byName[stream] = f
	case err == nil:
		delete(r.byName, stream)
	}
}

// snapshot returns a copy of the rejections, by stream.
func (r *rejections) snapshot() map[string]rejection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.byName)
}

// rejectedError returns an error if a log or bucket would reject its last rejected
// write again. It checks the space, because that write may never be repeated while
// the status is not ready.
func (s *Store) rejectedError() error {
	list := s.rejections.snapshot()
	for _, stream := range slices.Sorted(maps.Keys(list)) {
		f := list[stream]
		if s.hasRoomAgain(&f) {
			s.rejections.record(stream, f, nil)
			continue
		}
		return fmt.Errorf("%s is full: %w", f.name, f.err)
	}
	return nil
}

// hasRoomAgain reports whether the rejected write would succeed now.
func (s *Store) hasRoomAgain(f *rejection) bool {
	if s.engine.usedBytes()+f.size > s.cfg.MaxBytes {
		return false
	}
	if f.limit < 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	taken := f.size
	for _, name := range f.streams {
		stream, err := s.engine.js.Stream(ctx, name)
		if err != nil {
			return false
		}
		taken += int64(stream.CachedInfo().State.Bytes)
	}
	return taken <= f.limit
}

// recordWrite records the result of a write to a stream.
func (s *Store) recordWrite(w *pendingWrite, err error) {
	if err == nil {
		s.rejections.record(w.stream, rejection{}, nil)
		return
	}
	if !errors.Is(err, ErrFull) || s.checkWritable() != nil {
		return // not because the stream is full
	}
	s.mu.Lock()
	limit := s.specs[w.stream].MaxBytes
	s.mu.Unlock()
	s.rejections.record(w.stream, rejection{
		name: displayName(w.stream), streams: []string{w.stream}, limit: limit,
		size: int64(len(w.subject)+len(w.data)) + messageOverhead,
	}, err)
}

// After a write error the store counts as unwritable until a message of this size is
// durable in a stream of its own, which is created when it is first needed. It is
// larger than most records, so that a small rest of a quota does not count.
const (
	probeStream  = "CAPROUTER_PROBE"
	probeSubject = "probe"
	probeSize    = 64 << 10
)

// writeError returns why the engine was restarted, until a probe has been written.
func (s *Store) writeError() error {
	if why := s.failedWrite.Load(); why != nil {
		return fmt.Errorf("%w: a write failed (%s), and none has succeeded since", ErrUnavailable, *why)
	}
	return nil
}

// probeWrites writes a probe if a write has failed before.
func (s *Store) probeWrites(ctx context.Context) {
	why := s.failedWrite.Load()
	if why == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := s.writeProbe(ctx); err != nil {
		s.cfg.Logger.DebugContext(ctx, "store: still no write succeeds", "error", err)
		return
	}
	if len(s.engine.failures) > 0 {
		return // the engine is restarted for a failure of another stream
	}
	if s.failedWrite.CompareAndSwap(why, nil) {
		s.cfg.Logger.InfoContext(ctx, "store: writes succeed again")
	}
}

func (s *Store) writeProbe(ctx context.Context) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	_, err := s.engine.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: probeStream, Subjects: []string{probeSubject}, MaxMsgs: 1, Discard: jetstream.DiscardOld, Duplicates: time.Second,
		Replicas: s.cfg.Replication,
	})
	if err == nil {
		_, err = s.engine.js.Publish(ctx, probeSubject, make([]byte, probeSize),
			jetstream.WithMsgID(nuid.Next()), jetstream.WithExpectStream(probeStream))
	}
	return err
}
