package store_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// openEncrypted opens an encrypted bucket in each of two processes.
func openEncrypted(t *testing.T, maxAge time.Duration) (a, b *store.Bucket) {
	t.Helper()
	srv := teststore.Serve(t, t.TempDir(), -1)
	cfg := store.BucketConfig{MaxAge: maxAge, Keys: teststore.Keys()}
	return bucket(t, teststore.OpenShared(t, srv, "a"), cfg), bucket(t, teststore.OpenShared(t, srv, "b"), cfg)
}

func wantValue(t *testing.T, b *store.Bucket, key, want string) store.Entry {
	t.Helper()
	got, err := b.Get(t.Context(), key)
	if err != nil || string(got.Value) != want {
		t.Errorf("%s: got %q and error %v, want %q", key, got.Value, err, want)
	}
	return got
}

func TestSharedBucket_ReadsEpochsOfOtherProcess(t *testing.T) {
	a, b := openEncrypted(t, 0)
	ctx := t.Context()
	for i := range 3 {
		key := fmt.Sprint("k", i)
		rev := must[uint64](t)(a.Create(ctx, key, []byte("of a")))
		wantValue(t, b, key, "of a")
		must[uint64](t)(b.Update(ctx, key, []byte("of b"), rev))
		wantValue(t, a, key, "of b")
		if err := a.MoveDataKeys(ctx); err != nil { // ends the earlier epochs
			t.Fatal(err)
		}
		b.ClearDataKeyCache()
		for j := range i + 1 {
			wantValue(t, b, fmt.Sprint("k", j), "of b")
		}
		// b has not read the next epoch yet, and encrypts with the earlier one.
		if err := a.BeginEpoch(ctx); err != nil {
			t.Fatal(err)
		}
		must[uint64](t)(b.Create(ctx, fmt.Sprint("late", i), []byte("late")))
		if err := a.MoveDataKeys(ctx); err != nil {
			t.Fatal(err)
		}
		a.ClearDataKeyCache()
		for j := range i + 1 {
			wantValue(t, a, fmt.Sprint("late", j), "late")
		}
	}
}

func TestSharedBucket_DeleteErasesForAllProcesses(t *testing.T) {
	a, b := openEncrypted(t, 0)
	ctx := t.Context()
	must[uint64](t)(a.Create(ctx, "k", []byte("secret")))
	wantValue(t, b, "k", "secret")
	if err := b.Delete(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	_, err := a.Get(ctx, "k")
	wantErr(t, "get of an erased key", err, store.ErrNotFound)
	must[uint64](t)(a.Create(ctx, "k", []byte("new")))
	wantValue(t, b, "k", "new")
}

// If two processes create a key at the same time, one of them succeeds, and both read its value.
func TestSharedBucket_CreateSucceedsOnce(t *testing.T) {
	a, b := openEncrypted(t, time.Hour)
	buckets := []*store.Bucket{a, b}
	for i := range 50 {
		key := fmt.Sprint("k", i)
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for w := range buckets {
			wg.Go(func() { _, errs[w] = buckets[w].Create(t.Context(), key, fmt.Append(nil, w)) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("%s: got errors %v and %v, want exactly one error", key, errs[0], errs[1])
		}
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		wantErr(t, "the other create", errs[1-winner], store.ErrExists)
		wantValue(t, a, key, fmt.Sprint(winner))
		wantValue(t, b, key, fmt.Sprint(winner))
	}
}

// If a process updates or deletes a large value of another process, the blob is deleted.
func TestSharedBucket_RemovesBlobsOfOtherProcess(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := bucket(t, teststore.OpenShared(t, srv, "a"), store.BucketConfig{})
	b := bucket(t, teststore.OpenShared(t, srv, "b"), store.BucketConfig{})
	ctx, large := t.Context(), randomBytes(1_000_000)
	must[uint64](t)(a.Create(ctx, "deleted", large))
	rev := must[uint64](t)(a.Create(ctx, "updated", large))
	if err := b.Delete(ctx, "deleted"); err != nil {
		t.Fatal(err)
	}
	if got := must[store.Entry](t)(b.Get(ctx, "updated")); !bytes.Equal(got.Value, large) {
		t.Errorf("got %d bytes, want those of the other process", len(got.Value))
	}
	must[uint64](t)(b.Update(ctx, "updated", []byte("small"), rev))
	if got := a.BlobBytes(); got != 0 {
		t.Errorf("got %d bytes of blobs, want none", got)
	}
}

// Processes that start at the same time can open the same log in memory.
func TestSharedLog_IsCreatedConcurrently(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	stores := []*store.Store{teststore.OpenShared(t, srv, "a"), teststore.OpenShared(t, srv, "b"), teststore.OpenShared(t, srv, "c")}
	for i := range 10 {
		var wg sync.WaitGroup
		for _, s := range stores {
			wg.Go(func() {
				if _, err := s.Log(t.Context(), store.LogConfig{Name: fmt.Sprint("LOG", i), Subjects: []string{fmt.Sprintf("log%d.>", i)}, Memory: true}); err != nil {
					t.Errorf("log %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	}
}
