package store_test

import (
	"errors"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

type counter struct{ N int }

func counters(b *store.Bucket) *store.Table[counter] {
	return store.NewTable(b, store.TableConfig[counter]{Prefix: "n.", Clone: func(c *counter) *counter {
		clone := *c
		return &clone
	}})
}

// A table caches rows. Update must not overwrite a newer row of another writer, and must not
// return an error of a change that it applied to an outdated row.
func TestTable_UpdateIgnoresOutdatedCachedRow(t *testing.T) {
	b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "COUNTERS"})
	if err != nil {
		t.Fatal(err)
	}
	table, other := counters(b), counters(b)
	if _, err := table.Create(t.Context(), "a", &counter{}); err != nil {
		t.Fatal(err)
	}
	increment := func(c *counter) error { c.N++; return nil }
	for want := 1; want < 10; want++ {
		by := table
		if want%3 == 0 {
			by = other
		}
		row, err := by.Update(t.Context(), "a", increment)
		if err != nil || row.Value.N != want {
			t.Fatalf("update %d: got %+v and error %v, want %d", want, row.Value, err, want)
		}
		row.Value.N = -1 // a change by the caller must not change the cached row
	}
	if _, err := other.Update(t.Context(), "a", increment); err != nil {
		t.Fatal(err)
	}
	errRejected := errors.New("rejected by the change")
	row, err := table.Update(t.Context(), "a", func(c *counter) error {
		if c.N != 10 {
			return errRejected
		}
		return increment(c)
	})
	if err != nil || row.Value.N != 11 {
		t.Errorf("change that depends on the value: got %+v and error %v, want 11", row.Value, err)
	}
	if row, err = table.Update(t.Context(), "a", func(*counter) error { return errRejected }); !errors.Is(err, errRejected) || row.Value.N != 11 {
		t.Errorf("rejected change: got %+v and error %v, want 11 and %v", row.Value, err, errRejected)
	}
	if err := other.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Update(t.Context(), "a", increment); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("update of a deleted row: got error %v, want %v", err, store.ErrNotFound)
	}
}
