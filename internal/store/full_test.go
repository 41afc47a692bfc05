package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func TestStore_FullDiskRejectsWritesOnly(t *testing.T) {
	ctx := t.Context()
	var free atomic.Int64
	free.Store(1 << 40)
	s := teststore.Open(t, func(c *store.Config) {
		c.MinFree = 1 << 20
		c.FreeSpace = func() (store.Space, error) { return store.Space{Bytes: free.Load(), Files: -1}, nil }
	})
	b := bucket(t, s, store.BucketConfig{})
	l := openLog(t, s, store.LogConfig{})
	rev := must[uint64](t)(b.Put(ctx, "a", []byte("1")))
	must[uint64](t)(b.Put(ctx, "b", []byte("1")))
	appendText(t, l, "log.a", "1")

	free.Store(1<<20 - 1)
	_, create := b.Create(ctx, "new", nil)
	_, update := b.Update(ctx, "a", nil, rev)
	_, put := b.Put(ctx, "a", make([]byte, 1<<20))
	_, appended := l.Append(ctx, "log.a", nil, store.AppendOptions{})
	for what, err := range map[string]error{
		"create": create, "update": update, "put of a large value": put, "append": appended,
	} {
		wantErr(t, what, err, store.ErrFull)
	}
	if got, err := b.Get(ctx, "a"); err != nil || string(got.Value) != "1" {
		t.Errorf("get: got %q and error %v, want 1", got.Value, err)
	}
	if got := len(keys(t, b, "")); got != 2 {
		t.Errorf("scan: got %d keys, want 2", got)
	}
	if err := b.Delete(ctx, "b"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := l.Delete(ctx, 1); err != nil {
		t.Errorf("erase: %v", err)
	}

	free.Store(1 << 20)
	if _, err := b.Update(ctx, "a", []byte("2"), rev); err != nil {
		t.Errorf("update when space is free: %v", err)
	}
}

// A store that is opened without any free space serves reads, and accepts writes when
// there is space.
func TestOpen_NoFreeSpaceServesReads(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	must[uint64](t)(bucket(t, s, store.BucketConfig{}).Put(ctx, "a", []byte("1")))
	appendText(t, openLog(t, s, store.LogConfig{}), "log.a", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var free atomic.Int64
	s = open(t, dir, func(c *store.Config) {
		c.FreeSpace = func() (store.Space, error) { return store.Space{Bytes: free.Load(), Files: -1}, nil }
	})
	b, l := bucket(t, s, store.BucketConfig{}), openLog(t, s, store.LogConfig{})
	if got := must[store.Entry](t)(b.Get(ctx, "a")); string(got.Value) != "1" {
		t.Errorf("get: got %q, want 1", got.Value)
	}
	if got := texts(t, l, store.ReadFrom{}); len(got) != 1 {
		t.Errorf("read: got %q, want one message", got)
	}
	_, err := b.Put(ctx, "a", nil)
	wantErr(t, "put", err, store.ErrFull)
	free.Store(1 << 40)
	must[uint64](t)(b.Put(ctx, "a", []byte("2")))
}

// fill writes until the store is full, and returns the number of writes.
func fill(t *testing.T, write func(i int) error) int {
	t.Helper()
	for i := range 100_000 {
		if err := write(i); errors.Is(err, store.ErrFull) {
			return i
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("got no error, want the store to become full")
	return 0
}

func TestBucket_FullKeepsValues(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t, func(c *store.Config) { c.MaxBytes = 4 << 20 })
	b := bucket(t, s, store.BucketConfig{Share: 0.25})
	other := bucket(t, s, store.BucketConfig{Name: "OTHER", Share: 0.25})
	value := make([]byte, 10_000)
	n := fill(t, func(i int) error { _, err := b.Create(ctx, fmt.Sprint(i), value); return err })
	if n < 80 || n > 105 {
		t.Errorf("a share of 1 MiB held %d values of 10 kB", n)
	}
	if got := len(keys(t, b, "")); got != n {
		t.Errorf("got %d keys, want the %d that were acknowledged", got, n)
	}
	if _, err := other.Put(ctx, "a", value); err != nil {
		t.Errorf("the neighbour's own share: %v", err)
	}
	if err := b.Delete(ctx, "0"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := b.Create(ctx, "new", value); err != nil {
		t.Errorf("create in the room that was made: %v", err)
	}
	if _, err := s.Bucket(ctx, store.BucketConfig{Name: "MORE", Share: 0.75}); !errors.Is(err, store.ErrFull) {
		t.Errorf("a share larger than the free space: got error %v, want %v", err, store.ErrFull)
	}
}

func TestLog_FullKeepsMessages(t *testing.T) {
	s := teststore.Open(t, func(c *store.Config) { c.MaxBytes = 1 << 20 })
	l := openLog(t, s, store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}, Share: 0.5})
	n := fill(t, func(int) error {
		_, err := l.Append(t.Context(), "log.a", make([]byte, 10_000), store.AppendOptions{})
		return err
	})
	info := must[store.LogInfo](t)(l.Info(t.Context()))
	if info.Msgs != uint64(n) || info.First != 1 {
		t.Errorf("got %+v, want the %d messages that were acknowledged", info, n)
	}
	if err := l.Trim(t.Context(), uint64(n/2)); err != nil {
		t.Fatal(err)
	}
	appendText(t, l, "log.a", "in the room that was made")
}

func TestStore_FullRejectsWrites(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t, func(c *store.Config) { c.MaxBytes = 1 << 20 })
	b := bucket(t, s, store.BucketConfig{}) // no share of its own
	n := fill(t, func(i int) error { _, err := b.Create(ctx, fmt.Sprint(i), make([]byte, 10_000)); return err })
	if got := s.Status(); got.Ready || !errors.Is(got.Err, store.ErrFull) || got.Used < 1<<20 {
		t.Errorf("status: got %+v, want full", got)
	}
	if got := len(keys(t, b, "")); got != n {
		t.Errorf("got %d keys, want %d", got, n)
	}
	for i := range n / 2 {
		if err := b.Delete(ctx, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Create(ctx, "new", nil); err != nil {
		t.Errorf("create in the room that was made: %v", err)
	}
	if s.Restarts() != 0 {
		t.Error("a full store made the engine restart")
	}
}

// Without inodes the engine could not create its next file, and would stop.
func TestStore_RejectsWritesWithoutInodes(t *testing.T) {
	ctx := t.Context()
	var inodes atomic.Int64
	inodes.Store(1 << 20)
	s := teststore.Open(t, func(c *store.Config) {
		c.FreeSpace = func() (store.Space, error) { return store.Space{Bytes: 1 << 40, Files: inodes.Load()}, nil }
	})
	b := bucket(t, s, store.BucketConfig{})
	must[uint64](t)(b.Put(ctx, "a", []byte("1")))
	inodes.Store(3)
	_, err := b.Put(ctx, "a", []byte("2"))
	wantErr(t, "put", err, store.ErrFull)
	if status := s.Status(); status.Ready || !strings.Contains(fmt.Sprint(status.Err), "3 inodes") {
		t.Errorf("got status %+v, want the free inodes", status)
	}
	if got, err := b.Get(ctx, "a"); err != nil || string(got.Value) != "1" {
		t.Errorf("get: got %q and error %v, want 1", got.Value, err)
	}
	inodes.Store(1 << 20)
	must[uint64](t)(b.Put(ctx, "a", []byte("2")))
}
