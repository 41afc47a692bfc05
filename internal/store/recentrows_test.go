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

// A table that keeps rows must not write over what others have written, and must not
// decide with a row that is not the stored one.
func TestTable_UpdatesTheStoredRowAlthoughItKeepsAnother(t *testing.T) {
	b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "COUNTERS"})
	if err != nil {
		t.Fatal(err)
	}
	table, other := counters(b), counters(b)
	if _, err := table.Create(t.Context(), "a", &counter{}); err != nil {
		t.Fatal(err)
	}
	add := func(c *counter) error { c.N++; return nil }
	for want := 1; want < 10; want++ {
		by := table
		if want%3 == 0 {
			by = other
		}
		row, err := by.Update(t.Context(), "a", add)
		if err != nil || row.Value.N != want {
			t.Fatalf("update %d: got %+v, %v", want, row.Value, err)
		}
		row.Value.N = -1 // the caller may change it
	}
	if _, err := other.Update(t.Context(), "a", add); err != nil {
		t.Fatal(err)
	}
	errOld := errors.New("an old row")
	row, err := table.Update(t.Context(), "a", func(c *counter) error {
		if c.N != 10 {
			return errOld
		}
		return add(c)
	})
	if err != nil || row.Value.N != 11 {
		t.Errorf("a change that depends on the value: got %+v, %v, want 11", row.Value, err)
	}
	if row, err = table.Update(t.Context(), "a", func(*counter) error { return errOld }); !errors.Is(err, errOld) || row.Value.N != 11 {
		t.Errorf("a rejected change: got %+v, %v, want 11 and %v", row.Value, err, errOld)
	}
	if err := other.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Update(t.Context(), "a", add); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a deleted row: got %v, want %v", err, store.ErrNotFound)
	}
}
