package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// delayedBucket is a Versioned whose leader has received a write that is not stored by
// the other servers yet: readers do not get it until then, and further writes conflict.
type delayedBucket struct {
	stored time.Time // when it is
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

// A write that was faster, and cannot be read yet, is waited for: a cluster may take a
// second to store it, in which as many attempts as there are would all conflict.
func TestCompareAndSet_WaitsForWriteThatCannotBeReadYet(t *testing.T) {
	change := func(Entry) ([]byte, error) { return nil, nil }
	synctest.Test(t, func(t *testing.T) {
		b := &delayedBucket{stored: time.Now().Add(2 * time.Second)}
		if revision, err := CompareAndSet(t.Context(), b, "k", change); revision != 3 || err != nil {
			t.Errorf("got revision %d, %v, want 3", revision, err)
		}
		if b.writes > 50 {
			t.Errorf("got %d attempts, want pauses between them", b.writes)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.stored = time.Now().Add(time.Minute)
		if _, err := CompareAndSet(ctx, b, "k", change); !errors.Is(err, ErrUnavailable) {
			t.Errorf("at the end of the context: got %v, want %v", err, ErrUnavailable)
		}
	})
}
