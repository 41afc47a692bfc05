package requests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// openBucket returns the bucket of a new store.
func openBucket(t testing.TB) *store.Bucket {
	t.Helper()
	b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS", MaxAge: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// faultyTable is a table whose writes can be delayed or fail.
type faultyTable struct {
	recordTable
	// before is called before a write; its error replaces the write. after is called after a
	// successful write; its error replaces the confirmation.
	before, after func(op string) error
}

func (f *faultyTable) run(hook func(string) error, op string) error {
	if hook == nil {
		return nil
	}
	return hook(op)
}

func (f *faultyTable) Create(ctx context.Context, id string, r *Record) (uint64, error) {
	if err := f.run(f.before, "create"); err != nil {
		return 0, err
	}
	revision, err := f.recordTable.Create(ctx, id, r)
	if err == nil {
		err = f.run(f.after, "create")
	}
	return revision, err
}

func (f *faultyTable) Update(ctx context.Context, id string, change func(*Record) error) (store.Row[Record], error) {
	var failed error
	row, err := f.recordTable.Update(ctx, id, func(r *Record) error {
		if failed != nil { // called again with the stored row
			return failed
		}
		before, err := encodeRecord(id, r)
		if err != nil {
			return err
		}
		if err := change(r); err != nil {
			return err
		}
		if after, err := encodeRecord(id, r); err == nil && bytes.Equal(before, after) {
			return nil
		}
		failed = f.run(f.before, "update")
		return failed
	})
	if failed != nil {
		return store.Row[Record]{}, failed
	}
	if err == nil {
		err = f.run(f.after, "update")
	}
	if err != nil && f.after != nil && errors.Is(err, store.ErrUnavailable) {
		row = store.Row[Record]{}
	}
	return row, err
}

// withFaults returns a store on the bucket with these hooks.
func withFaults(b *store.Bucket, before, after func(op string) error) *Store {
	s := NewStore(b, quota.Unlimited())
	s.records = &faultyTable{recordTable: s.records, before: before, after: after}
	return s
}

// once returns the error the first time it is called for op.
func once(op string, err error) func(string) error {
	return func(got string) error {
		if got != op || err == nil {
			return nil
		}
		first := err
		err = nil
		return first
	}
}

func open(t *testing.T, b *Store) []string {
	t.Helper()
	ids, err := b.ListOpen(t.Context())
	must(t, err)
	return ids
}

func TestStore_KeepsRecordsAndIndex(t *testing.T) {
	b := NewStore(openBucket(t), quota.Unlimited())
	ctx := t.Context()
	var ids []string
	for i := range 3 {
		r := newRecord(fmt.Sprintf("r-%d", 3-i)) // in the order of creation, not of ids
		r.State = ""
		must(t, b.Create(ctx, r))
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff(ids, open(t, b)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}

	got, err := b.Get(ctx, "r-2")
	must(t, err)
	if diff := cmp.Diff(newRecord("r-2"), got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Record{}, "Version")); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}

	written, err := b.Update(ctx, "r-2", func(r *Record) error { return r.End("failed", answer("failed"), now) })
	must(t, err)
	got, err = b.Get(ctx, "r-2")
	must(t, err)
	if got.State != "failed" || written.State != "failed" {
		t.Errorf("got %s, and %s returned as written, want failed twice", got.State, written.State)
	}
	if diff := cmp.Diff(ids, open(t, b)); diff != "" {
		t.Errorf("open after an end, before it was removed from the index (-want +got):\n%s", diff)
	}
	must(t, b.RemoveOpen(ctx, "r-2"))
	must(t, b.RemoveOpen(ctx, "r-2"))
	must(t, b.Delete(ctx, "r-1"))
	must(t, b.Delete(ctx, "r-1"))
	if diff := cmp.Diff([]string{"r-3"}, open(t, b)); diff != "" {
		t.Errorf("open after one was removed and one deleted (-want +got):\n%s", diff)
	}
	if _, err := b.Get(ctx, "r-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleted record: got error %v, want %v", err, store.ErrNotFound)
	}
	if _, err := b.Get(ctx, "r-2"); err != nil {
		t.Errorf("finished record: got error %v, want none", err)
	}
}

func TestStore_ReportsMissingRecords(t *testing.T) {
	b := NewStore(openBucket(t), quota.Unlimited())
	ctx := t.Context()
	for _, id := range []string{"r-9", "", "a.b", ">", "*", "open.r-9"} {
		t.Run(id, func(t *testing.T) {
			if _, err := b.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("Get: got error %v, want %v", err, store.ErrNotFound)
			}
			_, err := b.Update(ctx, id, func(*Record) error { t.Error("got a record, want none"); return nil })
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("Change: got error %v, want %v", err, store.ErrNotFound)
			}
			must(t, b.RemoveOpen(ctx, id))
			must(t, b.Delete(ctx, id))
		})
	}
}

func TestCreate_RejectsExistingID(t *testing.T) {
	bucket := openBucket(t)
	b := NewStore(bucket, quota.Unlimited())
	ctx := t.Context()
	must(t, b.Create(ctx, newRecord("r-1")))
	if err := b.Create(ctx, newRecord("r-1")); !errors.Is(err, store.ErrExists) {
		t.Errorf("same id again: got error %v, want %v", err, store.ErrExists)
	}
	over := inState(t, "completed")
	must(t, b.Create(ctx, over))
	if diff := cmp.Diff([]string{"r-1"}, open(t, b)); diff != "" {
		t.Errorf("open, with one that had ended before it was written (-want +got):\n%s", diff)
	}
	if err := b.Create(ctx, newRecord("no key")); err == nil {
		t.Error("invalid id: got no error, want one")
	}

	down := withFaults(bucket, once("create", store.ErrUnavailable), nil)
	if err := down.Create(ctx, newRecord("r-3")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("unavailable store: got error %v, want %v", err, store.ErrUnavailable)
	}
}

func TestUpdate_RetriesAfterConflict(t *testing.T) {
	bucket := openBucket(t)
	other := NewStore(bucket, quota.Unlimited())
	ctx := t.Context()
	must(t, other.Create(ctx, newRecord("r-1")))
	meanwhile := func(string) error {
		_, err := other.Update(ctx, "r-1", func(r *Record) error {
			if r.Epoch < 3 {
				return r.TakeOver("router-2", now)
			}
			return nil
		})
		return err
	}
	b := withFaults(bucket, meanwhile, nil)
	var saw []int
	got, err := b.Update(ctx, "r-1", func(r *Record) error {
		saw = append(saw, r.Epoch)
		return r.End("cancelled", answer("cancelled"), now)
	})
	must(t, err)
	if diff := cmp.Diff([]int{0, 1, 2, 3}, saw); diff != "" || got.Epoch != 3 || got.State != "cancelled" {
		t.Errorf("got %s in epoch %d after the epochs (-want +got):\n%s", got.State, got.Epoch, diff)
	}
}

func TestUpdate_ReturnsStoredRecordWhenChangeFails(t *testing.T) {
	b := NewStore(openBucket(t), quota.Unlimited())
	ctx := t.Context()
	must(t, b.Create(ctx, newRecord("r-1")))
	own := errors.New("no")
	got, err := b.Update(ctx, "r-1", func(r *Record) error {
		r.OnlyAgent = "half done"
		return own
	})
	if !errors.Is(err, own) || got == nil || got.OnlyAgent != "" {
		t.Errorf("got %+v and error %v, want the stored record and %v", got, err, own)
	}
	if got, err = b.Get(ctx, "r-1"); err != nil || got.OnlyAgent != "" {
		t.Errorf("in the store: got %+v and error %v, want the stored record", got, err)
	}
}

func TestUpdate_WritesNothingWithoutChange(t *testing.T) {
	writes := 0
	b := withFaults(openBucket(t), func(op string) error {
		if op == "update" {
			writes++
		}
		return nil
	}, nil)
	ctx := t.Context()
	must(t, b.Create(ctx, inState(t, StateRunning)))
	for _, text := range []string{"x", "x", "x"} {
		_, err := b.Update(ctx, testID, func(r *Record) error {
			_, err := r.Deliver("t1", "quality", result(text))
			return err
		})
		must(t, err)
	}
	if writes != 1 {
		t.Errorf("got %d writes for a result delivered three times, want one", writes)
	}
}

func TestUpdate_ReturnsStoreErrors(t *testing.T) {
	b := withFaults(openBucket(t), once("update", store.ErrFull), nil)
	ctx := t.Context()
	must(t, b.Create(ctx, newRecord("r-1")))
	take := func(r *Record) error { return r.TakeOver(owner, now) }
	if got, err := b.Update(ctx, "r-1", take); !errors.Is(err, store.ErrFull) || got != nil {
		t.Errorf("full store: got %+v and error %v, want none and %v", got, err, store.ErrFull)
	}
	if got, err := b.Update(ctx, "r-1", take); err != nil || got.Epoch != 1 {
		t.Errorf("next update: got %+v and error %v, want epoch 1", got, err)
	}
	_, err := b.Update(ctx, "r-1", func(r *Record) error {
		r.Tasks = append(r.Tasks, Task{ID: "t1"})
		return nil
	})
	if err == nil {
		t.Error("inconsistent record: got no error, want one")
	}
}

func TestGet_ReportsUnreadableRecords(t *testing.T) {
	bucket := openBucket(t)
	b := NewStore(bucket, quota.Unlimited())
	ctx := t.Context()
	data, err := encodeRecord("r-1", newRecord("r-1"))
	must(t, err)
	for key, value := range map[string][]byte{"req.torn": data[:40], "req.other": data} {
		_, err := bucket.Put(ctx, key, value)
		must(t, err)
	}
	for _, id := range []string{"torn", "other"} {
		if r, err := b.Get(ctx, id); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %+v and error %v, want an error about the damage", id, r, err)
		}
	}
}

func TestAddOpen_RepairsIndex(t *testing.T) {
	bucket := openBucket(t)
	b := NewStore(bucket, quota.Unlimited())
	ctx := t.Context()
	must(t, b.Create(ctx, newRecord("r-1")))
	must(t, bucket.Delete(ctx, "open.r-1")) // as after an interrupted Create
	if got := open(t, b); len(got) != 0 {
		t.Fatalf("open: got %v, want none", got)
	}
	for range 2 {
		must(t, b.AddOpen(ctx, "r-1"))
		if diff := cmp.Diff([]string{"r-1"}, open(t, b)); diff != "" {
			t.Errorf("open (-want +got):\n%s", diff)
		}
	}
}

func TestUpdate_EndsWithContext(t *testing.T) {
	b := NewStore(openBucket(t), quota.Unlimited())
	must(t, b.Create(t.Context(), newRecord("r-1")))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Update(ctx, "r-1", func(r *Record) error { cancel(); return r.TakeOver(owner, now) })
	if err == nil {
		t.Error("got no error, want one")
	}
}

func TestHasCapacity_ComparesUsage(t *testing.T) {
	b := NewStore(openBucket(t), quota.Unlimited())
	for usage, want := range map[float64]bool{0: true, 0.69: true, 0.71: false, 1: false} {
		b.usage = func(context.Context) (float64, error) { return usage, nil }
		if got, err := b.HasCapacity(t.Context()); err != nil || got != want {
			t.Errorf("usage %g: got %t, %v, want %t", usage, got, err, want)
		}
	}
}

// The owner completes the decision of a planned request, while other goroutines write the record.
func TestUpdate_StoresPlannedDecision(t *testing.T) {
	s := NewStore(openBucket(t), quota.Unlimited())
	must(t, s.Create(t.Context(), newRecord("r")))
	planned := decision()
	_, err := s.Update(t.Context(), "r", func(r *Record) error { return r.Plan(planned, parts(), nil) })
	must(t, err)
	want := len(planned.TimingsMS)
	planned.TimingsMS = map[string]float64{"total": 1, "match": 2}
	_, err = s.Update(t.Context(), "r", func(r *Record) error { return r.Start(r.Owner, r.Epoch) })
	must(t, err)
	stored, err := s.Get(t.Context(), "r")
	must(t, err)
	if got := len(stored.Decision.TimingsMS); got != want {
		t.Errorf("got a decision with %d timings, want %d", got, want)
	}
}
