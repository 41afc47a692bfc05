package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// refusals are the logs and buckets that refused their last write for lack of
// room. A status must tell: a store of which one part is full does not do its
// work, however much the others may take.
type refusals struct {
	mu     sync.Mutex
	byName map[string]refusal // by stream
}

// refusal is a write for which there was no room.
type refusal struct {
	name    string   // of the log or bucket
	streams []string // that share the limit
	limit   int64    // -1 = none but the store's own
	size    int64
	err     error
}

// recordRoom is about what a message takes beside its subject and its data.
const recordRoom = 256

// noticed keeps how a write went.
func (r *refusals) noticed(stream string, f refusal, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, ErrFull):
		if r.byName == nil {
			r.byName = map[string]refusal{}
		}
		f.err = err
		r.byName[stream] = f
	case err == nil:
		delete(r.byName, stream)
	}
}

// list returns what was refused, by stream.
func (r *refusals) list() map[string]refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.byName)
}

// refused says which log or bucket would refuse again what it refused last. It
// looks whether there is room by now: a write that finds out may never come,
// when whoever would send it goes by the status.
func (s *Store) refused() error {
	list := s.refusals.list()
	for _, stream := range slices.Sorted(maps.Keys(list)) {
		f := list[stream]
		if s.roomAgain(&f) {
			s.refusals.noticed(stream, f, nil)
			continue
		}
		return fmt.Errorf("%s takes no more: %w", f.name, f.err)
	}
	return nil
}

// roomAgain reports whether a write that was refused would be taken now.
func (s *Store) roomAgain(f *refusal) bool {
	if s.engine.used()+f.size > s.cfg.MaxBytes {
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

// notice keeps how a write to a stream went.
func (s *Store) notice(w *write, err error) {
	if err == nil {
		s.refusals.noticed(w.stream, refusal{}, nil)
		return
	}
	if !errors.Is(err, ErrFull) || s.writable() != nil {
		return // not for lack of room in the stream
	}
	s.mu.Lock()
	limit := s.specs[w.stream].MaxBytes
	s.mu.Unlock()
	s.refusals.noticed(w.stream, refusal{
		name: named(w.stream), streams: []string{w.stream}, limit: limit,
		size: int64(len(w.subject)+len(w.data)) + recordRoom,
	}, err)
}
