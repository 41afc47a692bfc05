package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	for call, err := range map[string]error{
		"create": create, "update": update, "put of a large value": put, "append": appended,
	} {
		wantErr(t, call, err, store.ErrFull)
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
		t.Errorf("update with free space: got error %v, want nil", err)
	}
}

// A store that is opened without free space serves reads. It accepts writes as soon as there is
// space.
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
	t.Fatalf("got no error after 100,000 writes, want %v", store.ErrFull)
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
		t.Errorf("got %d values of 10 kB in a share of 1 MiB, want 80 to 105", n)
	}
	if got := len(keys(t, b, "")); got != n {
		t.Errorf("got %d keys, want the %d acknowledged ones", got, n)
	}
	if _, err := other.Put(ctx, "a", value); err != nil {
		t.Errorf("put into a bucket with another share: got error %v, want nil", err)
	}
	if err := b.Delete(ctx, "0"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := b.Create(ctx, "new", value); err != nil {
		t.Errorf("create after the delete: got error %v, want nil", err)
	}
	if _, err := s.Bucket(ctx, store.BucketConfig{Name: "MORE", Share: 0.75}); !errors.Is(err, store.ErrFull) {
		t.Errorf("share larger than the remaining space: got error %v, want %v", err, store.ErrFull)
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
		t.Errorf("got %+v, want the %d acknowledged messages", info, n)
	}
	if err := l.Trim(t.Context(), uint64(n/2)); err != nil {
		t.Fatal(err)
	}
	appendText(t, l, "log.a", "after the trim")
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
		t.Errorf("create after the delete: got error %v, want nil", err)
	}
	if s.Restarts() != 0 {
		t.Errorf("got %d restarts of the engine, want none because the store is full", s.Restarts())
	}
}

// Without free inodes, the engine could not create its next file and would stop.
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
		t.Errorf("got status %+v, want it not ready, with the number of inodes", status)
	}
	if got, err := b.Get(ctx, "a"); err != nil || string(got.Value) != "1" {
		t.Errorf("get: got %q and error %v, want 1", got.Value, err)
	}
	inodes.Store(1 << 20)
	must[uint64](t)(b.Put(ctx, "a", []byte("2")))
}

// A new store has no streams yet, and cannot create them without space: opening it fails with the
// fix, and creates nothing that a later start would take for a store.
func TestOpen_NewStoreNeedsFreeSpace(t *testing.T) {
	dir := t.TempDir()
	free := func() (store.Space, error) { return store.Space{Bytes: 11 << 20, Files: -1}, nil }
	s, err := store.Open(t.Context(), store.Config{Dir: dir, Owner: "test", FreeSpace: free})
	if err == nil {
		_ = s.Close()
	}
	wantErr(t, "open", err, store.ErrFull)
	if want := "the disk has 11 MiB free, and 64 MiB are reserved: free space, or choose another --data-dir"; err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("open: got error %v, want it to contain %q", err, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory of the engine: got error %v, want that it does not exist", err)
	}
}
