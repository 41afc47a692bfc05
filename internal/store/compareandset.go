package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
)

// maxUpdates bounds how often CompareAndSet tries again after a lost race.
const maxUpdates = 256

// Pauses of CompareAndSet while the write that won a race cannot be read: a cluster
// compares revisions with writes that it has not stored yet.
const (
	firstRacePause = time.Millisecond
	maxRacePause   = 100 * time.Millisecond
)

// Versioned is the part of a Bucket that CompareAndSet needs.
type Versioned interface {
	Get(ctx context.Context, key string) (Entry, error)
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (newRevision uint64, err error)
}

// CompareAndSet changes a key by optimistic concurrency control: it calls change with
// the current entry, of which the Revision is 0 if the key does not exist, and writes
// the returned value if no other write came in between. If one did, it begins again, as
// soon as that write can be read, so change may be called several times. After 256 lost
// races it returns ErrConflict.
//
// If change returns an error, nothing is written. ErrStop means that there is nothing
// to write, and is no error. The returned revision is that of the entry afterwards.
func CompareAndSet(ctx context.Context, b Versioned, key string, change func(Entry) ([]byte, error)) (uint64, error) {
	lostWith := uint64(0) // the revision of the last attempt
	backoff := resilience.Backoff{Min: firstRacePause, Max: maxRacePause}
	for n := range maxUpdates {
		entry, err := b.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return 0, err
		}
		if n > 0 && entry.Revision == lostWith {
			if !backoff.Sleep(ctx) {
				return 0, fmt.Errorf("update %s: %w: another write is not stored yet: %w", key, ErrUnavailable, context.Cause(ctx))
			}
		} else {
			backoff.Reset()
		}
		lostWith = entry.Revision
		value, err := change(entry)
		if err != nil {
			return entry.Revision, ignoreStop(err)
		}
		var revision uint64
		if entry.Revision == 0 {
			revision, err = b.Create(ctx, key, value)
		} else {
			revision, err = b.Update(ctx, key, value, entry.Revision)
		}
		if !errors.Is(err, ErrExists) && !errors.Is(err, ErrConflict) {
			return revision, err
		}
	}
	return 0, fmt.Errorf("update %s: %w %d times", key, ErrConflict, maxUpdates)
}
