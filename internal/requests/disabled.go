package requests

import (
	"context"

	"github.com/caprouter/caprouter/internal/store"
)

// Disabled returns the Store of a process without asynchronous requests: it is
// empty, and rejects every write with store.ErrUnavailable.
func Disabled() *Store { return &Store{bucket: noBucket{}} }

// Enabled reports whether the store can contain requests.
func (s *Store) Enabled() bool {
	_, disabled := s.bucket.(noBucket)
	return !disabled
}

// noBucket is an empty bucket that cannot be written.
type noBucket struct{}

func (noBucket) Get(context.Context, string) (store.Entry, error) {
	return store.Entry{}, store.ErrNotFound
}

func (noBucket) Create(context.Context, string, []byte) (uint64, error) {
	return 0, store.ErrUnavailable
}

func (noBucket) CreateWith(context.Context, string, []byte, string) (uint64, error) {
	return 0, store.ErrUnavailable
}

func (noBucket) Update(context.Context, string, []byte, uint64) (uint64, error) {
	return 0, store.ErrUnavailable
}

func (noBucket) Put(context.Context, string, []byte) (uint64, error) {
	return 0, store.ErrUnavailable
}
func (noBucket) Delete(context.Context, string) error                        { return nil }
func (noBucket) Scan(context.Context, string, func(store.Entry) error) error { return nil }
func (noBucket) Usage(context.Context) (float64, error)                      { return 0, nil }
