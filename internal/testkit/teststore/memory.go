package teststore

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/internal/store"
)

// MemoryBucket is a fake of store.Bucket for unit tests. Its zero value is empty.
type MemoryBucket struct {
	mu      sync.Mutex
	entries map[string]store.Entry
	Err     error // returned by Get if not nil
}

// Get returns the entry, or store.ErrNotFound.
func (b *MemoryBucket) Get(_ context.Context, key string) (store.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Err != nil {
		return store.Entry{}, b.Err
	}
	e, ok := b.entries[key]
	if !ok {
		return e, store.ErrNotFound
	}
	return e, nil
}

// Create returns store.ErrExists if the key exists.
func (b *MemoryBucket) Create(_ context.Context, key string, value []byte) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.entries[key]; ok {
		return 0, store.ErrExists
	}
	return b.put(key, value), nil
}

// Update returns store.ErrConflict if the key has another revision.
func (b *MemoryBucket) Update(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries[key].Revision != revision {
		return 0, store.ErrConflict
	}
	return b.put(key, value), nil
}

// Discard removes the key.
func (b *MemoryBucket) Discard(ctx context.Context, key string) error { return b.Delete(ctx, key) }

// EraseHistory does nothing, because earlier revisions are not stored.
func (b *MemoryBucket) EraseHistory(context.Context, string) error { return nil }

// Delete removes the key.
func (b *MemoryBucket) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, key)
	return nil
}

// DeleteRevision returns store.ErrConflict if the key has another revision.
func (b *MemoryBucket) DeleteRevision(_ context.Context, key string, revision uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[key]; ok && e.Revision != revision {
		return store.ErrConflict
	}
	delete(b.entries, key)
	return nil
}

func (b *MemoryBucket) put(key string, value []byte) uint64 {
	if b.entries == nil {
		b.entries = map[string]store.Entry{}
	}
	revision := b.entries[key].Revision + 1
	b.entries[key] = store.Entry{Key: key, Value: value, Revision: revision}
	return revision
}
