package requests

import (
	"context"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// Disabled returns the Store of a process without asynchronous requests: it is
// empty, and rejects every write with store.ErrUnavailable.
func Disabled() *Store {
	return &Store{
		records: disabledTable[Record]{}, open: disabledTable[struct{}]{},
		usage:         func(context.Context) (float64, error) { return 0, nil },
		quota:         quota.Unlimited(),
		checkWritable: func() error { return store.ErrUnavailable },
	}
}

// Enabled reports whether the store can contain requests.
func (s *Store) Enabled() bool {
	_, disabled := s.records.(disabledTable[Record])
	return !disabled
}

// disabledTable is an empty table that cannot be written.
type disabledTable[T any] struct{}

func (disabledTable[T]) Get(context.Context, string) (store.Row[T], error) {
	return store.Row[T]{}, store.ErrNotFound
}

func (disabledTable[T]) Create(context.Context, string, *T) (uint64, error) {
	return 0, store.ErrUnavailable
}

func (disabledTable[T]) Update(context.Context, string, func(*T) error) (store.Row[T], error) {
	return store.Row[T]{}, store.ErrNotFound
}

func (disabledTable[T]) Discard(context.Context, string) error { return nil }

func (disabledTable[T]) EraseHistory(context.Context, string) error { return nil }

func (disabledTable[T]) Delete(context.Context, string) error   { return nil }
func (disabledTable[T]) Keys(context.Context) ([]string, error) { return nil, nil }
