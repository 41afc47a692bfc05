package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// lease is the value of the rows in these tests.
type lease struct {
	Holder string `json:"holder"`
	Count  int    `json:"count"`
	TTLSec int    `json:"ttl_s"`
}

func openTable(t *testing.T, cfg store.BucketConfig) *store.Table[lease] {
	t.Helper()
	return store.NewTable(bucket(t, teststore.Open(t), cfg), leases(cfg.KeyTTL))
}

func leases(ttl bool) store.TableConfig[lease] {
	cfg := store.TableConfig[lease]{Prefix: "lease."}
	if ttl {
		cfg.TTL = func(l *lease) time.Duration { return time.Duration(l.TTLSec) * time.Second }
	}
	return cfg
}

func TestTable_StoresRows(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	table := store.NewTable(b, leases(false))
	if _, err := table.Get(ctx, "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get of a missing row: got error %v, want %v", err, store.ErrNotFound)
	}
	revision := must[uint64](t)(table.Create(ctx, "a", &lease{Holder: "ana"}))
	if _, err := table.Create(ctx, "a", &lease{}); !errors.Is(err, store.ErrExists) {
		t.Errorf("second create: got error %v, want %v", err, store.ErrExists)
	}
	row := must[store.Row[lease]](t)(table.Get(ctx, "a"))
	if row.Key != "a" || row.Revision != revision || row.Value.Holder != "ana" || row.At.IsZero() {
		t.Errorf("got %+v, want row a of ana at revision %d", row, revision)
	}
	must[uint64](t)(b.Put(ctx, "lease.bad", []byte("{")))
	must[uint64](t)(b.Put(ctx, "other.a", []byte("{}")))
	if diff := cmp.Diff([]string{"a", "bad"}, must[[]string](t)(table.Keys(ctx))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	var scanned []string
	err := table.Scan(ctx, func(r store.Row[lease], err error) error {
		scanned = append(scanned, fmt.Sprintf("%s %t %t", r.Key, r.Value != nil, err != nil))
		return nil
	})
	if diff := cmp.Diff([]string{"a true false", "bad false true"}, scanned); diff != "" || err != nil {
		t.Errorf("scan: error %v (-want +got):\n%s", err, diff)
	}
	if err := table.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Get(ctx, "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get of a deleted row: got error %v, want %v", err, store.ErrNotFound)
	}
}

func TestTable_UpdateRetriesAfterConflict(t *testing.T) {
	ctx := t.Context()
	table := openTable(t, store.BucketConfig{})
	must[uint64](t)(table.Create(ctx, "a", &lease{}))
	const writers = 16
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			_, err := table.Update(ctx, "a", func(l *lease) error { l.Count++; return nil })
			if err != nil {
				t.Errorf("update: %v", err)
			}
		})
	}
	wg.Wait()
	if got := must[store.Row[lease]](t)(table.Get(ctx, "a")).Value.Count; got != writers {
		t.Errorf("got count %d, want %d", got, writers)
	}

	calls := 0
	_, err := table.Update(ctx, "a", func(l *lease) error {
		calls++
		l.Holder = fmt.Sprint(calls)
		_, err := table.Update(ctx, "a", func(l *lease) error { l.Count++; return nil })
		return err
	})
	if !errors.Is(err, store.ErrConflict) || calls > 1000 {
		t.Errorf("row that changes during each attempt: got error %v after %d calls, want %v after at most 1000", err, calls, store.ErrConflict)
	}
}

func TestTable_UpdateWithoutChangeWritesNothing(t *testing.T) {
	ctx := t.Context()
	table := openTable(t, store.BucketConfig{})
	_, err := table.Update(ctx, "a", func(*lease) error { t.Error("change was called for a missing row"); return nil })
	wantErr(t, "update of a missing row", err, store.ErrNotFound)

	revision := must[uint64](t)(table.Create(ctx, "a", &lease{Holder: "ana"}))
	row, err := table.Update(ctx, "a", func(*lease) error { return nil })
	if err != nil || row.Revision != revision {
		t.Errorf("no change: got revision %d and error %v, want %d", row.Revision, err, revision)
	}
	errRejected := errors.New("rejected by the change")
	row, err = table.Update(ctx, "a", func(l *lease) error { l.Holder = "not stored"; return errRejected })
	if !errors.Is(err, errRejected) || row.Value == nil || row.Value.Holder != "ana" || row.Revision != revision {
		t.Errorf("rejected change: got %+v and error %v, want the row as stored", row, err)
	}
	if diff := cmp.Diff([]string{"a"}, must[[]string](t)(table.Keys(ctx))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestCompareAndSet_CreatesMissingKey(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := store.CompareAndSet(ctx, b, "a", func(e store.Entry) ([]byte, error) { return append(e.Value, 'x'), nil })
			if err != nil {
				t.Errorf("compare and set: %v", err)
			}
		})
	}
	wg.Wait()
	if got := string(must[store.Entry](t)(b.Get(ctx, "a")).Value); got != "xxxxxxxx" {
		t.Errorf("got %q, want 8 x", got)
	}
}

func TestTable_RejectsInvalidTTL(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t)
	plain := store.NewTable(bucket(t, s, store.BucketConfig{Name: "PLAIN"}), leases(true))
	if _, err := plain.Create(ctx, "a", &lease{TTLSec: 2}); err == nil || !strings.Contains(err.Error(), "KeyTTL") {
		t.Errorf("create without KeyTTL: got error %v, want one that names KeyTTL", err)
	}
	if err := plain.Watch(ctx, nil); err == nil || !strings.Contains(err.Error(), "KeyTTL") {
		t.Errorf("watch without KeyTTL: got error %v, want one that names KeyTTL", err)
	}
	cfg := leases(true)
	cfg.TTL = func(*lease) time.Duration { return 999 * time.Millisecond }
	short := store.NewTable(bucket(t, s, store.BucketConfig{Name: "SHORT", KeyTTL: true}), cfg)
	if _, err := short.Create(ctx, "a", &lease{}); err == nil || !strings.Contains(err.Error(), "shorter than 1s") {
		t.Errorf("TTL below a second: got error %v, want one that names the limit", err)
	}
}

// watchEvent is a comparable form of a change.
type watchEvent struct {
	Key    string
	Holder string // "" = the row was deleted
}

// watch returns the changes of a table until the test ends.
func watch(t *testing.T, table *store.Table[lease]) <-chan watchEvent {
	t.Helper()
	events := make(chan watchEvent, 64)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- table.Watch(ctx, func(r store.Row[lease], err error) error {
			if err != nil {
				return err
			}
			e := watchEvent{Key: r.Key}
			if r.Value != nil {
				e.Holder = r.Value.Holder
			}
			events <- e
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := testkit.Receive(t, done); !errors.Is(err, context.Canceled) {
			t.Errorf("watch ended with %v, want %v", err, context.Canceled)
		}
	})
	return events
}

func wantEvents(t *testing.T, events <-chan watchEvent, want ...watchEvent) {
	t.Helper()
	for _, w := range want {
		if got := testkit.Receive(t, events); got != w {
			t.Fatalf("got event %+v, want %+v", got, w)
		}
	}
}

func TestTable_WatchReportsChanges(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{KeyTTL: true})
	table := store.NewTable(b, leases(true))
	must[uint64](t)(table.Create(ctx, "a", &lease{Holder: "ana"}))
	must[uint64](t)(b.Put(ctx, "other.a", []byte("{}")))
	events := watch(t, table)
	wantEvents(t, events, watchEvent{"a", "ana"})

	must[uint64](t)(table.Create(ctx, "b", &lease{Holder: "bia"}))
	wantEvents(t, events, watchEvent{"b", "bia"})
	must[store.Row[lease]](t)(table.Update(ctx, "a", func(l *lease) error { l.Holder = "ann"; return nil }))
	wantEvents(t, events, watchEvent{"a", "ann"})
	if err := table.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	wantEvents(t, events, watchEvent{"a", ""})
	if _, err := table.Get(ctx, "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get of a deleted row: got error %v, want %v", err, store.ErrNotFound)
	}
	if diff := cmp.Diff([]string{"b"}, must[[]string](t)(table.Keys(ctx))); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	must[uint64](t)(table.Create(ctx, "a", &lease{Holder: "again"}))
	wantEvents(t, events, watchEvent{"a", "again"})

	s.FailEngine("simulated by a test")
	must[store.Row[lease]](t)(table.Update(ctx, "b", func(l *lease) error { l.Holder = "bea"; return nil }))
	wantEvents(t, events, watchEvent{"b", "bea"})
}

// The engine expires rows with the real clock, so the test waits for the watch event. An update
// must set the TTL again, because the engine drops that of the previous value.
func TestTable_RowExpires(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	table := openTable(t, store.BucketConfig{KeyTTL: true})
	events := watch(t, table)
	must[uint64](t)(table.Create(ctx, "stays", &lease{Holder: "ana", TTLSec: 3600}))
	wantEvents(t, events, watchEvent{"stays", "ana"})
	must[uint64](t)(table.Create(ctx, "expires", &lease{Holder: "bia", TTLSec: 3600}))
	wantEvents(t, events, watchEvent{"expires", "bia"})
	must[store.Row[lease]](t)(table.Update(ctx, "expires", func(l *lease) error { l.TTLSec = 1; return nil }))
	wantEvents(t, events, watchEvent{"expires", "bia"}, watchEvent{"expires", ""})
	if _, err := table.Get(ctx, "expires"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get of an expired row: got error %v, want %v", err, store.ErrNotFound)
	}
	must[uint64](t)(table.Create(ctx, "expires", &lease{Holder: "new", TTLSec: 3600}))
	wantEvents(t, events, watchEvent{"expires", "new"})

	// An update without a change is written, because it renews the TTL.
	before := must[store.Row[lease]](t)(table.Get(ctx, "stays")).Revision
	row := must[store.Row[lease]](t)(table.Update(ctx, "stays", func(*lease) error { return nil }))
	if row.Revision <= before {
		t.Errorf("got revision %d after %d, want a larger one, because an update renews the TTL", row.Revision, before)
	}
}
