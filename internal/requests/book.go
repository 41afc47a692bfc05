package requests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/internal/store"
)

// The keys of one request: its record, and the mark of one that has not been
// settled. The marks are an index: they say where to look after a start, and
// nothing else rests on them.
const (
	recordPrefix = "req."
	markPrefix   = "open."
)

// bucket is what the book needs of a store.Bucket.
type bucket interface {
	Get(ctx context.Context, key string) (store.Entry, error)
	Create(ctx context.Context, key string, value []byte) (uint64, error)
	CreateWith(ctx context.Context, key string, value []byte, mark string) (uint64, error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	Delete(ctx context.Context, key string) error
	Scan(ctx context.Context, prefix string, fn func(store.Entry) error) error
	Usage(ctx context.Context) (float64, error)
}

// Store holds the records of requests. It keeps nothing in memory and may be used
// by any number of goroutines. Its errors wrap the store's: ErrNotFound, ErrExists,
// ErrFull, ErrUnavailable.
type Store struct{ bucket bucket }

// NewStore opens the book that lies in the bucket.
func NewStore(b *store.Bucket) *Store { return &Store{bucket: b} }

// Create writes a new record. When it returns nil the record is on disk and, where
// it has not ended, in the index.
func (b *Store) Create(ctx context.Context, r *Record) error {
	if r.State == "" {
		r.State = StateAccepted
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	if r.State.Terminal() {
		_, err = b.bucket.Create(ctx, recordPrefix+r.ID, data)
	} else {
		_, err = b.bucket.CreateWith(ctx, recordPrefix+r.ID, data, markPrefix+r.ID)
	}
	if errors.Is(err, store.ErrExists) {
		// Where a write was tried again because its confirmation got lost, what
		// is in the way is our own.
		if e, gerr := b.bucket.Get(ctx, recordPrefix+r.ID); gerr == nil && bytes.Equal(e.Value, data) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("create request %s: %w", r.ID, err)
	}
	return nil
}

// Get reads a record.
func (b *Store) Get(ctx context.Context, id string) (*Record, error) {
	r, _, err := b.load(ctx, id)
	return r, err
}

// Update moves a record on: fn is called with the record as it is, and what it
// makes of it is written, unless somebody else wrote meanwhile. Then fn is called
// again with what they wrote. Change returns the record as written.
//
// When fn returns an error, or changes nothing, nothing is written; with the error
// comes the record as it is. Any other error but ErrFull leaves open whether the
// change was written, and comes with no record: what must be known is done with a
// context that ends late, since only the same call recognises its own write. The
// index is left alone: see Settle.
func (b *Store) Update(ctx context.Context, id string, fn func(*Record) error) (*Record, error) {
	var tried []byte
	for {
		r, e, err := b.load(ctx, id)
		if err != nil {
			return nil, err
		}
		if tried != nil && bytes.Equal(e.Value, tried) {
			return r, nil // the conflict was with our own write, whose confirmation got lost
		}
		if err := fn(r); err != nil {
			if r, derr := decode(e.Value); derr == nil { // fn may have done half of what it wanted
				return r, err
			}
			return nil, err
		}
		data, err := encode(r)
		if err != nil {
			return nil, err
		}
		if sameRecord(e.Value, data) {
			return r, nil
		}
		_, err = b.bucket.Update(ctx, recordPrefix+id, data, e.Revision)
		switch {
		case err == nil:
			return r, nil
		case !errors.Is(err, store.ErrConflict):
			return nil, fmt.Errorf("change request %s: %w", id, err)
		}
		tried = data
	}
}

// ListOpen lists the requests that were not settled, oldest first. Some may have ended,
// or be gone: their process died before it settled them.
func (b *Store) ListOpen(ctx context.Context) ([]string, error) {
	var ids []string
	err := b.bucket.Scan(ctx, markPrefix, func(e store.Entry) error {
		ids = append(ids, strings.TrimPrefix(e.Key, markPrefix))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open requests: %w", err)
	}
	return ids, nil
}

// RemoveOpen takes a request out of the index, when all that follows from its end was
// done.
func (b *Store) RemoveOpen(ctx context.Context, id string) error {
	if !validID(id) {
		return nil
	}
	if err := b.bucket.Delete(ctx, markPrefix+id); err != nil {
		return fmt.Errorf("settle request %s: %w", id, err)
	}
	return nil
}

// Delete removes a request and every trace of it from the book.
func (b *Store) Delete(ctx context.Context, id string) error {
	if !validID(id) {
		return nil
	}
	if err := b.bucket.Delete(ctx, recordPrefix+id); err != nil {
		return fmt.Errorf("delete request %s: %w", id, err)
	}
	return b.RemoveOpen(ctx, id)
}

// reserve is the part of the room that new requests leave to those that were
// accepted: their records grow with every result, and must be able to.
const reserve = 0.3

// HasCapacity reports whether there is room for one more request. It looks at the store;
// ask it seldom.
func (b *Store) HasCapacity(ctx context.Context) (bool, error) {
	filled, err := b.bucket.Usage(ctx)
	if err != nil {
		return false, fmt.Errorf("room for requests: %w", err)
	}
	return filled <= 1-reserve, nil
}

// IsOpen reports whether the request is in the index of those that have not ended,
// or whose end is not settled yet.
func (b *Store) IsOpen(ctx context.Context, id string) (bool, error) {
	if !validID(id) {
		return false, nil
	}
	_, err := b.bucket.Get(ctx, markPrefix+id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("mark of request %s: %w", id, err)
	}
	return true, nil
}

// AddOpen puts a request into the index of those that have not ended. A Create that
// broke off in the middle can leave a record that is not in it; nobody was told
// that it was accepted.
func (b *Store) AddOpen(ctx context.Context, id string) error {
	if _, err := b.bucket.Put(ctx, markPrefix+id, nil); err != nil {
		return fmt.Errorf("mark request %s: %w", id, err)
	}
	return nil
}

// load reads a record and its place in the store.
func (b *Store) load(ctx context.Context, id string) (*Record, store.Entry, error) {
	if !validID(id) {
		return nil, store.Entry{}, fmt.Errorf("read request %q: %w", id, store.ErrNotFound)
	}
	e, err := b.bucket.Get(ctx, recordPrefix+id)
	if err != nil {
		return nil, e, fmt.Errorf("read request %s: %w", id, err)
	}
	r, err := decode(e.Value)
	if err == nil && r.ID != id {
		err = fmt.Errorf("it is that of %s", r.ID)
	}
	if err != nil {
		return nil, e, fmt.Errorf("record of request %s: %w", id, err)
	}
	return r, e, nil
}
