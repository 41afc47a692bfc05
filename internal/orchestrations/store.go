package orchestrations

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator"
)

// runStore holds the records of runs, and an index of those that have not ended. It
// implements orchestrator.Store.
type runStore struct {
	bucket    *store.Bucket
	records   *store.Table[orchestrator.Record]
	open      *store.Table[struct{}]
	quota     *quota.Ledger
	followers *followers
}

const recordPrefix = "run."

func newRunStore(b *store.Bucket, shares *quota.Ledger) *runStore {
	return &runStore{
		bucket: b, quota: shares, followers: &followers{},
		records: store.NewTable(b, store.TableConfig[orchestrator.Record]{Prefix: recordPrefix, Encode: encodeRecord, Decode: decodeRecord}),
		open:    store.NewIndex(b, "open."),
	}
}

func encodeRecord(id string, r *orchestrator.Record) ([]byte, error) {
	r.Version = orchestrator.RecordVersion
	if err := r.Check(id); err != nil {
		return nil, err
	}
	return strictjson.Marshal(r)
}

func decodeRecord(id string, data []byte) (*orchestrator.Record, error) {
	r := new(orchestrator.Record)
	if err := strictjson.UnmarshalDeep(data, r); err != nil {
		return nil, err
	}
	if err := r.Check(id); err != nil {
		return nil, err
	}
	return r, nil
}

// create writes a new record, and its entry in the index.
func (s *runStore) create(ctx context.Context, rec *orchestrator.Record) error {
	owner := quota.OwnerOf(&rec.Caller)
	if s.quota.Excess(owner) > 0 {
		err := s.quota.Trim(owner, "", func(key string) error { return s.records.Discard(ctx, key[len(recordPrefix):]) })
		if err != nil {
			return fmt.Errorf("make room for orchestrations: %w", err)
		}
		if s.quota.Excess(owner) > 0 {
			return s.quota.Exceeded(owner)
		}
	}
	if _, err := s.open.Create(ctx, rec.ID, nil); err != nil {
		return err
	}
	s.quota.Count(owner, recordPrefix+rec.ID)
	if _, err := s.records.Create(ctx, rec.ID, rec); err != nil {
		if !errors.Is(err, store.ErrUnavailable) {
			s.quota.Withdraw(recordPrefix + rec.ID)
		}
		return err
	}
	return nil
}

// get reads a record. The error is store.ErrNotFound if there is none.
func (s *runStore) get(ctx context.Context, id string) (*orchestrator.Record, error) {
	if !store.ValidID(id) {
		return nil, store.ErrNotFound
	}
	row, err := s.records.Get(ctx, id)
	return row.Value, err
}

// Update implements orchestrator.Store.
func (s *runStore) Update(ctx context.Context, id string, change func(*orchestrator.Record) error) (*orchestrator.Record, error) {
	if !store.ValidID(id) {
		return nil, store.ErrNotFound
	}
	row, err := s.records.Update(ctx, id, change)
	if err == nil {
		s.followers.notify(id)
	}
	return row.Value, err
}

// cancelCreated ends a run that its owner has not begun. The error is store.ErrNotFound if it
// is not stored, and orchestrator.ErrNotOwner if another process has taken it over.
func (s *runStore) cancelCreated(ctx context.Context, id, owner string) (*orchestrator.Record, error) {
	return s.Update(ctx, id, func(r *orchestrator.Record) error {
		switch {
		case r.Owner != owner:
			return orchestrator.ErrNotOwner
		case r.State.Terminal(): // an earlier attempt was not confirmed
			return nil
		}
		r.Owner = "" // no process executes it, so it ends now
		err := r.Cancel(r.Caller.Subject, time.Now())
		r.Owner = owner
		return err
	})
}

// forget removes what create has written for a run that is not stored.
func (s *runStore) forget(ctx context.Context, id string) error {
	if err := s.open.Discard(ctx, id); err != nil {
		return err
	}
	s.quota.Withdraw(recordPrefix + id)
	return nil
}

// isOpen reports whether the index contains the run.
func (s *runStore) isOpen(ctx context.Context, id string) (bool, error) {
	_, err := s.open.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// close removes a run that has ended from the index.
func (s *runStore) close(ctx context.Context, id string) error {
	if err := s.open.Discard(ctx, id); err != nil {
		return err
	}
	s.quota.Release(recordPrefix + id)
	return nil
}

// loadQuota counts the records that were stored before the start.
func (s *runStore) loadQuota(ctx context.Context) error {
	ids, err := s.open.Keys(ctx)
	if err != nil {
		return fmt.Errorf("count the stored orchestrations: %w", err)
	}
	open := map[string]bool{}
	for _, id := range ids {
		open[recordPrefix+id] = true
	}
	return s.bucket.Scan(ctx, recordPrefix, func(e store.Entry) error {
		var rec struct {
			Caller contract.Caller `json:"caller"`
		}
		if strictjson.UnmarshalDeepAllowUnknown(e.Value, &rec) != nil {
			return nil //nolint:nilerr // it belongs to no caller
		}
		s.quota.Load(quota.OwnerOf(&rec.Caller), e.Key, len(e.Value), e.At)
		if !open[e.Key] {
			s.quota.Release(e.Key)
		}
		return nil
	})
}

// followers are the readers that wait for changes of records.
type followers struct {
	mu   sync.Mutex
	byID map[string]map[chan struct{}]bool
}

// follow returns a channel that receives after a change of the record, until stop is called.
func (f *followers) follow(id string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID == nil {
		f.byID = map[string]map[chan struct{}]bool{}
	}
	if f.byID[id] == nil {
		f.byID[id] = map[chan struct{}]bool{}
	}
	f.byID[id][ch] = true
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.byID[id], ch)
		if len(f.byID[id]) == 0 {
			delete(f.byID, id)
		}
	}
}

func (f *followers) notify(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.byID[id] {
		select {
		case ch <- struct{}{}:
		default: // it has not looked since the last change
		}
	}
}
