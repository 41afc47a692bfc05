package store

import (
	"bytes"
	"context"
	"errors"
	"sync"
)

// Bounds of the rows that a table keeps.
const (
	maxRecentRows = 512      // about the requests that execute at the same time
	maxRecentRow  = 32 << 10 // bytes of an encoded row
)

// recentRows are the rows that a table has written lately. A row that was changed or
// deleted since, here or by another process, does no harm: its revision is not the
// current one, so that it cannot be updated. A row is taken for an update, and put back
// with its new revision, so that one goroutine has it at a time.
type recentRows[T any] struct {
	mu   sync.Mutex
	rows map[string]recentRow[T]
}

// recentRow is a row as it was written.
type recentRow[T any] struct {
	value    *T
	data     []byte // encoded value
	revision uint64
}

// take removes a row, and returns it.
func (r *recentRows[T]) take(key string) (recentRow[T], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row, ok := r.rows[key]
	delete(r.rows, key)
	return row, ok
}

// put adds a row, unless there is a newer one.
func (r *recentRows[T]) put(key string, row recentRow[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, ok := r.rows[key]
	switch {
	case ok && have.revision > row.revision:
		return
	case r.rows == nil:
		r.rows = map[string]recentRow[T]{}
	case !ok && len(r.rows) >= maxRecentRows:
		for other := range r.rows { // any
			delete(r.rows, other)
			break
		}
	}
	r.rows[key] = row
}

// updateRecent is Update of a row that was written lately. It reports false if the row
// must be read: it is not known, another write came in between, or change has nothing to
// write, which may be different with a newer row.
func (t *Table[T]) updateRecent(ctx context.Context, key string, change func(*T) error) (row Row[T], done bool, err error) {
	have, ok := t.recent.take(key)
	if !ok || change(have.value) != nil {
		return Row[T]{}, false, nil //nolint:nilerr // Update decides again with the stored row
	}
	data, err := t.cfg.Encode(key, have.value)
	if err != nil || bytes.Equal(data, have.data) {
		return Row[T]{}, false, nil //nolint:nilerr // Update encodes the stored row, and returns the error
	}
	revision, err := t.bucket.updateKey(ctx, t.cfg.Prefix+key, data, have.revision, t.ttlOf(have.value))
	switch {
	case errors.Is(err, ErrConflict):
		return Row[T]{}, false, nil
	case err != nil:
		return Row[T]{}, true, t.wrapError("update", key, err)
	}
	t.keepRecent(key, revision, data, have.value)
	return Row[T]{Key: key, Value: have.value, Revision: revision}, true, nil
}

// keepRecent keeps a row that was written.
func (t *Table[T]) keepRecent(key string, revision uint64, data []byte, value *T) {
	if t.cfg.Clone == nil || len(data) > maxRecentRow {
		return
	}
	if kept := t.cfg.Clone(value); kept != nil {
		t.recent.put(key, recentRow[T]{value: kept, data: data, revision: revision})
	}
}
