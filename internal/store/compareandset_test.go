package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// delayedBucket is a Versioned of a cluster. Its leader has accepted a write that the other
// servers have not stored yet: until then, reads return the old value and further writes conflict.
type delayedBucket struct {
	stored time.Time // when the other servers have the write
	writes int
}

func (b *delayedBucket) Get(context.Context, string) (Entry, error) {
	if time.Now().Before(b.stored) {
		return Entry{Revision: 1}, nil
	}
	return Entry{Revision: 2}, nil
}

func (b *delayedBucket) Create(context.Context, string, []byte) (uint64, error) { return 0, ErrExists }

func (b *delayedBucket) Update(_ context.Context, _ string, _ []byte, revision uint64) (uint64, error) {
	b.writes++
	if revision != 2 || time.Now().Before(b.stored) {
		return 0, ErrConflict
	}
	return 3, nil
}

// A cluster may take a second to store a concurrent write. Until then, all attempts conflict, so
// CompareAndSet pauses between them.
func TestCompareAndSet_WaitsForConcurrentWrite(t *testing.T) {
	change := func(Entry) ([]byte, error) { return nil, nil }
	synctest.Test(t, func(t *testing.T) {
		b := &delayedBucket{stored: time.Now().Add(2 * time.Second)}
		if revision, err := CompareAndSet(t.Context(), b, "k", change); revision != 3 || err != nil {
			t.Errorf("got revision %d and error %v, want 3 and nil", revision, err)
		}
		if b.writes > 50 {
			t.Errorf("got %d attempts, want at most 50, with pauses between them", b.writes)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.stored = time.Now().Add(time.Minute)
		if _, err := CompareAndSet(ctx, b, "k", change); !errors.Is(err, ErrUnavailable) {
			t.Errorf("at the end of the context: got %v, want %v", err, ErrUnavailable)
		}
	})
}
