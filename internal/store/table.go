package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// TableConfig describes how a table stores its values.
type TableConfig[T any] struct {
	// Prefix begins the key of every row, for example "ticket.".
	Prefix string
	// Encode and Decode convert values; nil = strict JSON. A value that they reject is
	// not written, or not read.
	Encode func(key string, value *T) ([]byte, error)
	Decode func(key string, data []byte) (*T, error)
	// TTL returns how long a value stays after it was written, at least 1 s; 0 =
	// for the bucket's MaxAge. Nil = no value has a TTL. Every write renews it.
	// The bucket needs KeyTTL.
	TTL func(*T) time.Duration
	// Clone returns a copy of a value that a change does not alter, or nil for a value
	// that is not changed any more. If it is set, the table keeps the values that it has
	// written lately, so that Update need not read and decode them. Nil = it keeps none.
	Clone func(*T) *T
}

// Table holds values of one type under the keys of a bucket that have one prefix.
// Several tables may share a bucket. Its methods may be called from any goroutine.
type Table[T any] struct {
	bucket *Bucket
	cfg    TableConfig[T]
	recent recentRows[T]
}

// Row is a key with its current value. The caller may change the value: the table
// keeps no reference to it, unless TableConfig.Clone returns one.
type Row[T any] struct {
	Key      string // without the table's prefix
	Value    *T
	Revision uint64    // grows with each write to the bucket
	At       time.Time // when it was written; zero for a row that this call wrote
}

// NewTable returns the table of the bucket's keys with the prefix.
func NewTable[T any](b *Bucket, cfg TableConfig[T]) *Table[T] {
	if cfg.Encode == nil {
		cfg.Encode = func(_ string, value *T) ([]byte, error) { return strictjson.Marshal(value) }
	}
	if cfg.Decode == nil {
		cfg.Decode = func(_ string, data []byte) (*T, error) {
			value := new(T)
			return value, strictjson.Unmarshal(data, value)
		}
	}
	return &Table[T]{bucket: b, cfg: cfg}
}

// NewIndex returns a table whose rows are only keys, for example the ids of what is open.
func NewIndex(b *Bucket, prefix string) *Table[struct{}] {
	return NewTable(b, TableConfig[struct{}]{
		Prefix: prefix,
		Encode: func(string, *struct{}) ([]byte, error) { return nil, nil },
		Decode: func(string, []byte) (*struct{}, error) { return new(struct{}), nil },
	})
}

// Get reads a row. It returns ErrNotFound if there is no such row.
func (t *Table[T]) Get(ctx context.Context, key string) (Row[T], error) {
	entry, err := t.bucket.Get(ctx, t.cfg.Prefix+key)
	if err != nil {
		return Row[T]{}, err
	}
	return t.decodeRow(&entry)
}

func (t *Table[T]) decodeRow(e *Entry) (Row[T], error) {
	r := Row[T]{Key: e.Key[len(t.cfg.Prefix):], Revision: e.Revision, At: e.At}
	var err error
	if r.Value, err = t.cfg.Decode(r.Key, e.Value); err != nil {
		r.Value = nil
		return r, fmt.Errorf("decode %s/%s: %w", t.bucket.name, e.Key, err)
	}
	return r, nil
}

// Create writes a row whose key does not exist, and returns its revision. It returns
// ErrExists if there is such a row.
func (t *Table[T]) Create(ctx context.Context, key string, value *T) (uint64, error) {
	data, err := t.cfg.Encode(key, value)
	if err == nil {
		var revision uint64
		if revision, err = t.bucket.createKey(ctx, t.cfg.Prefix+key, data, t.ttlOf(value)); err == nil {
			t.keepRecent(key, revision, data, value)
			return revision, nil
		}
	}
	return 0, t.wrapError("create", key, err)
}

func (t *Table[T]) ttlOf(value *T) time.Duration {
	if t.cfg.TTL == nil {
		return 0
	}
	return t.cfg.TTL(value)
}

func (t *Table[T]) wrapError(operation, key string, err error) error {
	return fmt.Errorf("%s %s/%s%s: %w", operation, t.bucket.name, t.cfg.Prefix, key, err)
}

// ttlBucket writes to a bucket with a TTL. One goroutine owns it.
type ttlBucket struct {
	*Bucket
	ttl time.Duration // of the next write
}

func (b *ttlBucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return b.createKey(ctx, key, value, b.ttl)
}

func (b *ttlBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return b.updateKey(ctx, key, value, revision, b.ttl)
}

// Update changes a row by CompareAndSet: change gets the current value and modifies
// it, possibly several times.
//
// If change returns an error, Update writes nothing and returns this error with the
// row as stored. If change leaves the value as it was, Update writes nothing, unless
// the table has a TTL to renew. After any other error it is not known whether the
// change was written, except for ErrFull, ErrConflict, and ErrNotFound if there is no such
// row.
func (t *Table[T]) Update(ctx context.Context, key string, change func(*T) error) (Row[T], error) {
	if row, done, err := t.updateRecent(ctx, key, change); done {
		return row, err
	}
	var row Row[T]
	var entry Entry
	var written []byte
	var rejected error // by change
	b := &ttlBucket{Bucket: t.bucket}
	revision, err := CompareAndSet(ctx, b, t.cfg.Prefix+key, func(e Entry) (_ []byte, err error) {
		if entry = e; e.Revision == 0 {
			return nil, ErrNotFound
		}
		if row, err = t.decodeRow(&e); err != nil {
			return nil, err
		}
		rejected = change(row.Value)
		if rejected != nil {
			return nil, rejected
		}
		written, err = t.cfg.Encode(key, row.Value)
		if err == nil && t.cfg.TTL == nil && bytes.Equal(written, e.Value) {
			return nil, ErrStop
		}
		b.ttl = t.ttlOf(row.Value)
		return written, err
	})
	switch {
	case rejected != nil:
		return t.storedRow(&entry, rejected)
	case err != nil:
		return Row[T]{}, t.wrapError("update", key, err)
	case revision != entry.Revision:
		row.Revision, row.At = revision, time.Time{}
		t.keepRecent(key, revision, written, row.Value)
	}
	return row, nil
}

// Replace writes a row if its revision is still the given one, and returns the new one.
// ErrConflict if the revision differs or the row does not exist.
func (t *Table[T]) Replace(ctx context.Context, key string, revision uint64, value *T) (uint64, error) {
	data, err := t.cfg.Encode(key, value)
	if err == nil {
		t.recent.take(key)
		revision, err = t.bucket.updateKey(ctx, t.cfg.Prefix+key, data, revision, t.ttlOf(value))
	}
	if err != nil {
		return 0, t.wrapError("replace", key, err)
	}
	return revision, nil
}

// storedRow returns the row as stored, because change may have altered half of the
// value before it failed.
func (t *Table[T]) storedRow(e *Entry, err error) (Row[T], error) {
	if row, decodeErr := t.decodeRow(e); decodeErr == nil {
		return row, err
	}
	return Row[T]{}, err
}

// Delete removes a row. It is no error if it does not exist.
func (t *Table[T]) Delete(ctx context.Context, key string) error {
	t.recent.take(key)
	return t.bucket.Delete(ctx, t.cfg.Prefix+key)
}

// DeleteRevision removes a row, unless it has a later revision: then it returns
// ErrConflict. See Bucket.DeleteRevision.
func (t *Table[T]) DeleteRevision(ctx context.Context, key string, revision uint64) error {
	t.recent.take(key)
	return t.bucket.DeleteRevision(ctx, t.cfg.Prefix+key, revision)
}

// Discard removes a row to make room; see Bucket.Discard.
func (t *Table[T]) Discard(ctx context.Context, key string) error {
	t.recent.take(key)
	return t.bucket.Discard(ctx, t.cfg.Prefix+key)
}

// EraseHistory makes the earlier revisions of a row unreadable; see Bucket.EraseHistory.
func (t *Table[T]) EraseHistory(ctx context.Context, key string) error {
	t.recent.take(key)
	return t.bucket.EraseHistory(ctx, t.cfg.Prefix+key)
}

// Scan calls fn for every row, in the order of their revisions; see Bucket.Scan. A
// row that cannot be decoded has no Value, and comes with the error. ErrStop from fn
// ends the scan without an error.
func (t *Table[T]) Scan(ctx context.Context, fn func(Row[T], error) error) error {
	return t.bucket.Scan(ctx, t.cfg.Prefix, func(e Entry) error { return fn(t.decodeRow(&e)) })
}

// Keys returns the keys of all rows, in the order of their revisions.
func (t *Table[T]) Keys(ctx context.Context) ([]string, error) { return t.KeysBelow(ctx, "") }

// KeysBelow is Keys of the rows whose keys begin with a prefix of whole parts, for example
// "a.".
func (t *Table[T]) KeysBelow(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	err := t.bucket.Scan(ctx, t.cfg.Prefix+prefix, func(e Entry) error {
		keys = append(keys, e.Key[len(t.cfg.Prefix):])
		return nil
	})
	return keys, err
}

// Watch calls fn for every row, and then for every change, in order; see
// Bucket.Watch. A row without a Value was deleted, has expired, or cannot be decoded:
// then fn gets the error as well.
func (t *Table[T]) Watch(ctx context.Context, fn func(Row[T], error) error) error {
	return t.bucket.Watch(ctx, t.cfg.Prefix, func(c Change) error {
		if c.Deleted {
			return fn(Row[T]{Key: c.Key[len(t.cfg.Prefix):], Revision: c.Revision, At: c.At}, nil)
		}
		return fn(t.decodeRow(&c.Entry))
	})
}
