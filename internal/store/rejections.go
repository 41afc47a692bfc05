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

// rejections are the logs and buckets that refused their last write for lack of
// room. A status must tell: a store of which one part is full does not do its
// work, however much the others may take.
type rejections struct {
	mu     sync.Mutex
	byName map[string]rejection // by stream
}

// rejection is a write for which there was no room.
type rejection struct {
	name    string   // of the log or bucket
	streams []string // that share the limit
	limit   int64    // -1 = none but the store's own
	size    int64
	err     error
}

// messageOverhead is about what a message takes beside its subject and its data.
const messageOverhead = 256

// record keeps how a write went.
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

// snapshot returns what was refused, by stream.
func (r *rejections) snapshot() map[string]rejection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.byName)
}

// rejectedError says which log or bucket would refuse again what it refused last. It
// looks whether there is room by now: a write that finds out may never come,
// when whoever would send it goes by the status.
func (s *Store) rejectedError() error {
	list := s.rejections.snapshot()
	for _, stream := range slices.Sorted(maps.Keys(list)) {
		f := list[stream]
		if s.hasRoomAgain(&f) {
			s.rejections.record(stream, f, nil)
			continue
		}
		return fmt.Errorf("%s takes no more: %w", f.name, f.err)
	}
	return nil
}

// hasRoomAgain reports whether a write that was refused would be taken now.
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

// recordWrite keeps how a write to a stream went.
func (s *Store) recordWrite(w *pendingWrite, err error) {
	if err == nil {
		s.rejections.record(w.stream, rejection{}, nil)
		return
	}
	if !errors.Is(err, ErrFull) || s.checkWritable() != nil {
		return // not for lack of room in the stream
	}
	s.mu.Lock()
	limit := s.specs[w.stream].MaxBytes
	s.mu.Unlock()
	s.rejections.record(w.stream, rejection{
		name: displayName(w.stream), streams: []string{w.stream}, limit: limit,
		size: int64(len(w.subject)+len(w.data)) + messageOverhead,
	}, err)
}
