package requests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// openBucket is the bucket of a new store, which a test may wrap.
func openBucket(t testing.TB) *store.Bucket {
	t.Helper()
	b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "REQUESTS", MaxAge: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// faulty is a bucket that does to some writes what a bad moment does.
type faulty struct {
	bucket
	// before is called before a write; its error is the write's. after is called
	// when the write has happened; its error hides that.
	before, after func(op string) error
}

func (f *faulty) write(op string, do func() (uint64, error)) (uint64, error) {
	if f.before != nil {
		if err := f.before(op); err != nil {
			return 0, err
		}
	}
	rev, err := do()
	if err == nil && f.after != nil {
		err = f.after(op)
	}
	return rev, err
}

func (f *faulty) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return f.write("create", func() (uint64, error) { return f.bucket.Create(ctx, key, value) })
}

func (f *faulty) CreateWith(ctx context.Context, key string, value []byte, mark string) (uint64, error) {
	return f.write("create", func() (uint64, error) { return f.bucket.CreateWith(ctx, key, value, mark) })
}

func (f *faulty) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return f.write("update", func() (uint64, error) { return f.bucket.Update(ctx, key, value, revision) })
}

// once returns the error the first time it is asked about op.
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

func TestBook(t *testing.T) {
	b := NewStore(openBucket(t))
	ctx := t.Context()
	var ids []string
	for i := range 3 {
		r := accepted(fmt.Sprintf("r-%d", 3-i)) // the order is that of creation, not of names
		r.State = ""
		must(t, b.Create(ctx, r))
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff(ids, open(t, b)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}

	got, err := b.Get(ctx, "r-2")
	must(t, err)
	if diff := cmp.Diff(accepted("r-2"), got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Record{}, "Version")); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}

	written, err := b.Update(ctx, "r-2", func(r *Record) error { return r.End("failed", answer("failed"), now) })
	must(t, err)
	got, err = b.Get(ctx, "r-2")
	must(t, err)
	if got.State != "failed" || written.State != "failed" {
		t.Errorf("got %s, and %s was returned as written, want failed twice", got.State, written.State)
	}
	if diff := cmp.Diff(ids, open(t, b)); diff != "" {
		t.Errorf("open after an end, before it is settled (-want +got):\n%s", diff)
	}
	must(t, b.RemoveOpen(ctx, "r-2"))
	must(t, b.RemoveOpen(ctx, "r-2"))
	must(t, b.Delete(ctx, "r-1"))
	must(t, b.Delete(ctx, "r-1"))
	if diff := cmp.Diff([]string{"r-3"}, open(t, b)); diff != "" {
		t.Errorf("open after one was settled and one deleted (-want +got):\n%s", diff)
	}
	if _, err := b.Get(ctx, "r-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a record that was deleted: got error %v, want %v", err, store.ErrNotFound)
	}
	if _, err := b.Get(ctx, "r-2"); err != nil {
		t.Errorf("a record that was settled: got error %v, want none", err)
	}
}

func TestBookWithoutARecord(t *testing.T) {
	b := NewStore(openBucket(t))
	ctx := t.Context()
	for _, id := range []string{"r-9", "", "a.b", ">", "*", "open.r-9"} {
		t.Run(id, func(t *testing.T) {
			if _, err := b.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("Get: got error %v, want %v", err, store.ErrNotFound)
			}
			_, err := b.Update(ctx, id, func(*Record) error { t.Error("there is a record, want none"); return nil })
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("Change: got error %v, want %v", err, store.ErrNotFound)
			}
			must(t, b.RemoveOpen(ctx, id))
			must(t, b.Delete(ctx, id))
		})
	}
}

func TestCreate(t *testing.T) {
	bucket := openBucket(t)
	b := NewStore(bucket)
	ctx := t.Context()
	must(t, b.Create(ctx, accepted("r-1")))
	if err := b.Create(ctx, accepted("r-1")); !errors.Is(err, store.ErrExists) {
		t.Errorf("the same id again: got error %v, want %v", err, store.ErrExists)
	}
	over := inState(t, "completed")
	must(t, b.Create(ctx, over))
	if diff := cmp.Diff([]string{"r-1"}, open(t, b)); diff != "" {
		t.Errorf("open, with one that had ended before it was written (-want +got):\n%s", diff)
	}
	if err := b.Create(ctx, accepted("no key")); err == nil {
		t.Error("an id that is no key: got no error, want one")
	}

	confirmationLost := &Store{&faulty{bucket: bucket, after: once("create", store.ErrExists)}}
	must(t, confirmationLost.Create(ctx, accepted("r-2")))
	down := &Store{&faulty{bucket: bucket, before: once("create", store.ErrUnavailable)}}
	if err := down.Create(ctx, accepted("r-3")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a store that is down: got error %v, want %v", err, store.ErrUnavailable)
	}
}

func TestChangeDecidesAgain(t *testing.T) {
	bucket := openBucket(t)
	other := NewStore(bucket)
	ctx := t.Context()
	must(t, other.Create(ctx, accepted("r-1")))
	meanwhile := func(string) error {
		_, err := other.Update(ctx, "r-1", func(r *Record) error {
			if r.Epoch < 3 {
				return r.TakeOver("router-2", now)
			}
			return nil
		})
		return err
	}
	b := &Store{&faulty{bucket: bucket, before: meanwhile}}
	var saw []int
	got, err := b.Update(ctx, "r-1", func(r *Record) error {
		saw = append(saw, r.Epoch)
		return r.End("cancelled", answer("cancelled"), now)
	})
	must(t, err)
	if diff := cmp.Diff([]int{0, 1, 2, 3}, saw); diff != "" || got.Epoch != 3 || got.State != "cancelled" {
		t.Errorf("got %s in epoch %d after seeing the epochs (-want +got):\n%s", got.State, got.Epoch, diff)
	}
}

func TestChangeThatIsRefused(t *testing.T) {
	b := NewStore(openBucket(t))
	ctx := t.Context()
	must(t, b.Create(ctx, accepted("r-1")))
	own := errors.New("no")
	got, err := b.Update(ctx, "r-1", func(r *Record) error {
		r.OnlyAgent = "half done"
		return own
	})
	if !errors.Is(err, own) || got == nil || got.OnlyAgent != "" {
		t.Errorf("got %+v and error %v, want the record as it was and %v", got, err, own)
	}
	if got, err = b.Get(ctx, "r-1"); err != nil || got.OnlyAgent != "" {
		t.Errorf("in the store: got %+v and error %v, want the record as it was", got, err)
	}
}

func TestChangeOfNothingWritesNothing(t *testing.T) {
	writes := 0
	b := &Store{&faulty{bucket: openBucket(t), before: func(op string) error {
		if op == "update" {
			writes++
		}
		return nil
	}}}
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
		t.Errorf("a result that came three times was written %d times, want once", writes)
	}
}

// A write whose confirmation got lost meets itself when it is tried again: that is
// no conflict, though what was to be done cannot be done twice.
func TestChangeKnowsItsOwnWrite(t *testing.T) {
	b := &Store{&faulty{bucket: openBucket(t), after: once("update", store.ErrConflict)}}
	ctx := t.Context()
	must(t, b.Create(ctx, accepted("r-1")))
	calls := 0
	got, err := b.Update(ctx, "r-1", func(r *Record) error {
		calls++
		return r.Plan(decision(), parts(), nil)
	})
	must(t, err)
	if calls != 1 || got.State != StatePlanned {
		t.Errorf("got %s after %d calls, want planned after 1", got.State, calls)
	}
}

func TestChangeEndsWithTheStore(t *testing.T) {
	b := &Store{&faulty{bucket: openBucket(t), before: once("update", store.ErrFull)}}
	ctx := t.Context()
	must(t, b.Create(ctx, accepted("r-1")))
	take := func(r *Record) error { return r.TakeOver(owner, now) }
	if got, err := b.Update(ctx, "r-1", take); !errors.Is(err, store.ErrFull) || got != nil {
		t.Errorf("a full store: got %+v and error %v, want nothing and %v", got, err, store.ErrFull)
	}
	if got, err := b.Update(ctx, "r-1", take); err != nil || got.Epoch != 1 {
		t.Errorf("afterwards: got %+v and error %v, want epoch 1", got, err)
	}
	_, err := b.Update(ctx, "r-1", func(r *Record) error {
		r.Tasks = append(r.Tasks, Task{ID: "t1"})
		return nil
	})
	if err == nil {
		t.Error("a record that does not hang together: got no error, want it not to be written")
	}
}

func TestUnreadableRecords(t *testing.T) {
	bucket := openBucket(t)
	b := NewStore(bucket)
	ctx := t.Context()
	data, err := encode(accepted("r-1"))
	must(t, err)
	for key, value := range map[string][]byte{"req.torn": data[:40], "req.other": data} {
		_, err := bucket.Put(ctx, key, value)
		must(t, err)
	}
	for _, id := range []string{"torn", "other"} {
		if r, err := b.Get(ctx, id); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %+v and error %v, want an error that says what is wrong", id, r, err)
		}
	}
}

func TestMark(t *testing.T) {
	bucket := openBucket(t)
	b := NewStore(bucket)
	ctx := t.Context()
	must(t, b.Create(ctx, accepted("r-1")))
	must(t, bucket.Delete(ctx, markPrefix+"r-1")) // as a Create leaves it that breaks off
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

// A racer who lost the race and one who is cancelled end, whatever goes on.
func TestChangeEndsWithItsContext(t *testing.T) {
	b := NewStore(openBucket(t))
	must(t, b.Create(t.Context(), accepted("r-1")))
	ctx, cancel := context.WithCancel(t.Context())
	b.bucket = &faulty{bucket: b.bucket, before: func(string) error { cancel(); return store.ErrConflict }}
	_, err := b.Update(ctx, "r-1", func(r *Record) error { return r.TakeOver(owner, now) })
	if err == nil {
		t.Error("got no error, want one")
	}
}

// crowded is a bucket that says how full it is.
type crowded struct {
	bucket
	filled float64
}

func (c *crowded) Usage(context.Context) (float64, error) { return c.filled, nil }

func TestRoom(t *testing.T) {
	b := NewStore(openBucket(t))
	for filled, want := range map[float64]bool{0: true, 0.69: true, 0.71: false, 1: false} {
		b.bucket = &crowded{bucket: b.bucket, filled: filled}
		if got, err := b.HasCapacity(t.Context()); err != nil || got != want {
			t.Errorf("filled by %g: got %t, %v, want %t", filled, got, err, want)
		}
	}
}
