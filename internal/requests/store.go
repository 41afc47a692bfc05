package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// recordTable is the part of a store.Table that holds the records.
type recordTable interface {
	Get(ctx context.Context, id string) (store.Row[Record], error)
	Create(ctx context.Context, id string, r *Record) (uint64, error)
	Update(ctx context.Context, id string, change func(*Record) error) (store.Row[Record], error)
	Delete(ctx context.Context, id string) error
	Discard(ctx context.Context, id string) error
	EraseHistory(ctx context.Context, id string) error
}

// openTable is the part of a store.Table that holds the index of open requests.
type openTable interface {
	Get(ctx context.Context, id string) (store.Row[struct{}], error)
	Create(ctx context.Context, id string, value *struct{}) (uint64, error)
	Discard(ctx context.Context, id string) error
	Keys(ctx context.Context) ([]string, error)
}

// Store holds the records of requests, and an index of the open ones,
// which a new process needs to resume them. In memory it has copies of some open
// records, so that an update need not read them. It may be used by any number of
// goroutines. Its errors wrap those of package store: ErrNotFound, ErrExists, ErrFull,
// ErrUnavailable.
type Store struct {
	records recordTable
	open    openTable
	usage   func(context.Context) (float64, error) // of the bucket: 0 … 1
	quota   *quota.Ledger
	freeing sync.Mutex // serializes MakeRoom and FreeCapacity

	checkWritable func() error
}

const recordPrefix = "req."

// NewStore returns the store of the records in the bucket. The ledger counts their
// bytes; the bucket reports its writes to it.
func NewStore(b *store.Bucket, shares *quota.Ledger) *Store {
	return &Store{
		quota:   shares,
		records: store.NewTable(b, store.TableConfig[Record]{Prefix: recordPrefix, Encode: encodeRecord, Decode: decodeRecord, Clone: cloneOpen}),
		open:    store.NewIndex(b, "open."),
		usage:   b.Usage, checkWritable: b.CheckWritable,
	}
}

// cloneOpen returns a copy that changes of the record do not alter, or nil if it has
// ended. Transitions replace what tasks, parts and the request refer to; the owner of the
// request completes its decision.
func cloneOpen(r *Record) *Record {
	if r.State.Terminal() {
		return nil
	}
	c := *r
	c.Tasks = slices.Clone(r.Tasks)
	if r.Decision != nil {
		c.Decision = new(*r.Decision)
	}
	c.Request.RequestID, c.Request.TraceID, c.Request.Idempotency = r.ID, r.TraceID, nil // as in a decoded record
	return &c
}

// Create writes a new record. When it returns nil, the record is durable and, unless
// the request has ended, in the index of open requests. If it fails, the id may be
// in the index without a record.
func (s *Store) Create(ctx context.Context, r *Record) error {
	if r.State == "" {
		r.State = StateAccepted
	}
	if err := checkID(r.ID); err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	writes := []func(context.Context) error{
		func(ctx context.Context) error { _, err := s.records.Create(ctx, r.ID, r); return err },
		func(ctx context.Context) error { return s.AddOpen(ctx, r.ID) },
	}
	if r.State.Terminal() {
		writes = writes[:1]
	}
	s.quota.Count(quota.OwnerOf(&r.Caller), recordPrefix+r.ID)
	errs := make([]error, len(writes))
	run.ForEach(ctx, len(writes), len(writes), func(ctx context.Context, i int) { errs[i] = writes[i](ctx) })
	if errs[0] != nil && !errors.Is(errs[0], store.ErrUnavailable) {
		s.quota.Withdraw(recordPrefix + r.ID)
	}
	for _, err := range errs { // that of the record first
		if err != nil {
			return fmt.Errorf("create request %s: %w", r.ID, err)
		}
	}
	return nil
}

// Get reads a record.
func (s *Store) Get(ctx context.Context, id string) (*Record, error) {
	row, err := store.Row[Record]{}, checkID(id)
	if err == nil {
		row, err = s.records.Get(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read request %.150q: %w", id, err)
	}
	return row.Value, nil
}

// HasEnded reports whether the request has ended, or has no record any more. If the
// record cannot be read, it reports false.
func (s *Store) HasEnded(ctx context.Context, id string) bool {
	r, err := s.Get(ctx, id)
	if err != nil {
		return errors.Is(err, store.ErrNotFound)
	}
	return r.State.Terminal()
}

// Update changes a record by optimistic concurrency control: it calls change with
// the current record, and writes the result. If another write came in between, it
// calls change again with the new record. It returns the record as written.
//
// If change returns an error, or changes nothing, nothing is written; the error
// comes with the record as stored. After any other error except ErrFull it is not
// known whether the change was written, and no record is returned. The index of open
// requests is not changed: see RemoveOpen.
func (s *Store) Update(ctx context.Context, id string, change func(*Record) error) (*Record, error) {
	row, err := store.Row[Record]{}, checkID(id)
	if err == nil {
		row, err = s.records.Update(ctx, id, change)
	}
	if err != nil && row.Value == nil {
		return nil, fmt.Errorf("update request %.150q: %w", id, err)
	}
	return row.Value, err
}

// Delete removes a record, and its entry in the index of open requests.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !store.ValidID(id) {
		return nil
	}
	if err := s.records.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete request %s: %w", id, err)
	}
	return s.RemoveOpen(ctx, id)
}

// EraseTurns removes the turns of the session from a record, also from its earlier
// revisions. It is no error if there is no record.
func (s *Store) EraseTurns(ctx context.Context, id string) error {
	if !store.ValidID(id) {
		return nil
	}
	_, err := s.records.Update(ctx, id, func(r *Record) error { r.History = nil; return nil })
	if err == nil || errors.Is(err, store.ErrNotFound) {
		err = s.records.EraseHistory(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("erase turns in request %s: %w", id, err)
	}
	return nil
}

// ListOpen returns the ids in the index of open requests, oldest first. Some of
// these requests may have ended or may not exist: their process ended before it
// removed them.
func (s *Store) ListOpen(ctx context.Context) ([]string, error) {
	ids, err := s.open.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list open requests: %w", err)
	}
	return ids, nil
}

// IsOpen reports whether a request is in the index of open requests.
func (s *Store) IsOpen(ctx context.Context, id string) (bool, error) {
	if !store.ValidID(id) {
		return false, nil
	}
	_, err := s.open.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up open request %s: %w", id, err)
	}
	return true, nil
}

// AddOpen adds a request to the index of open requests. A Create that was
// interrupted can leave a record that is not in it.
func (s *Store) AddOpen(ctx context.Context, id string) error {
	if _, err := s.open.Create(ctx, id, nil); err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("add open request %s: %w", id, err)
	}
	return nil
}

// RemoveOpen removes a request from the index of open requests. The caller does so
// after everything that follows from the request's end.
func (s *Store) RemoveOpen(ctx context.Context, id string) error {
	if !store.ValidID(id) {
		return nil
	}
	if err := s.open.Discard(ctx, id); err != nil {
		return fmt.Errorf("remove open request %s: %w", id, err)
	}
	s.quota.Release(recordPrefix + id)
	return nil
}

// CheckWritable returns an error if the store would not accept a new request now. It
// does not wait.
func (s *Store) CheckWritable() error { return s.checkWritable() }

// reservedShare is the part of the bucket that new requests leave to accepted ones,
// because their records grow with every result.
const reservedShare = 0.3

// HasCapacity reports whether one more request can be accepted. It queries the
// engine, so callers should cache the answer.
func (s *Store) HasCapacity(ctx context.Context) (bool, error) {
	usage, err := s.usage(ctx)
	if err != nil {
		return false, fmt.Errorf("capacity for requests: %w", err)
	}
	return usage <= 1-reservedShare, nil
}

// Quota returns the ledger of the records.
func (s *Store) Quota() *quota.Ledger { return s.quota }

// MakeRoom removes ended requests if the share of the caller's tenant is used up: the
// oldest of that tenant. It returns quota_exceeded if requests that have not ended use
// up the share.
func (s *Store) MakeRoom(ctx context.Context, caller *contract.Caller) error {
	owner := quota.OwnerOf(caller)
	if s.quota.Excess(owner) == 0 {
		return nil
	}
	s.freeing.Lock()
	defer s.freeing.Unlock()
	if err := s.quota.Trim(owner, "", s.removeEnded(ctx)); err != nil {
		return fmt.Errorf("make room for requests: %w", err)
	}
	if s.quota.Excess(owner) > 0 {
		return s.quota.Exceeded(owner)
	}
	return nil
}

// freedShare is the part of the bucket that FreeCapacity frees at once.
const freedShare = 0.02

// FreeCapacity removes ended requests of a bucket without capacity: the oldest of the
// tenant with the most bytes, then of the next one. It reports whether one more
// request can be accepted.
func (s *Store) FreeCapacity(ctx context.Context) (bool, error) {
	s.freeing.Lock()
	defer s.freeing.Unlock()
	usage, err := s.usage(ctx)
	if err != nil {
		return false, fmt.Errorf("capacity for requests: %w", err)
	}
	excess := usage - (1 - reservedShare)
	if excess <= 0 {
		return true, nil
	}
	if err := s.quota.Free(s.quota.BytesOf(excess+freedShare), s.removeEnded(ctx)); err != nil {
		return false, fmt.Errorf("make room for requests: %w", err)
	}
	return s.HasCapacity(ctx)
}

// removeEnded returns a function that removes the record of an ended request. Its
// answer stays in the audit log.
func (s *Store) removeEnded(ctx context.Context) func(key string) error {
	return func(key string) error { return s.records.Discard(ctx, strings.TrimPrefix(key, recordPrefix)) }
}

// checkID returns store.ErrNotFound if id cannot be the id of a request.
func checkID(id string) error {
	if !store.ValidID(id) {
		return fmt.Errorf("%w: not an id of a request", store.ErrNotFound)
	}
	return nil
}
