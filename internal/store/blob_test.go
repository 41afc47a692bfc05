package store_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// randomBytes returns random data, which does not compress.
func randomBytes(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data)
	return data
}

func TestBlob_StoresLargeValues(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{})
	for _, size := range []int{0, 512<<10 - 1, 512 << 10, 512<<10 + 1, 768 << 10, 768<<10 + 1, 5_000_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			key := fmt.Sprintf("size.%d", size)
			value := randomBytes(size)
			rev := must[uint64](t)(b.Create(ctx, key, value))
			_, err := b.Create(ctx, key, value)
			wantErr(t, "second create", err, store.ErrExists)
			if got := must[store.Entry](t)(b.Get(ctx, key)); !bytes.Equal(got.Value, value) || got.Revision != rev {
				t.Errorf("got %d bytes at revision %d, want the %d written bytes at %d", len(got.Value), got.Revision, size, rev)
			}
			other := randomBytes(700 << 10)
			second := must[uint64](t)(b.Update(ctx, key, other, rev))
			_, err = b.Update(ctx, key, value, rev)
			wantErr(t, "update from an old revision", err, store.ErrConflict)
			if got := must[store.Entry](t)(b.Get(ctx, key)); !bytes.Equal(got.Value, other) {
				t.Errorf("got %d bytes after the update, want the %d written ones", len(got.Value), len(other))
			}
			scanned := false
			err = b.Scan(ctx, "size.", func(e store.Entry) error {
				scanned = scanned || e.Key == key && bytes.Equal(e.Value, other)
				return nil
			})
			if err != nil || !scanned {
				t.Errorf("scan: got the value: %t, error %v; want the value and nil", scanned, err)
			}
			if got := b.BlobBytes(); got < 700<<10 || got > 710<<10 {
				t.Errorf("got %d bytes of large values stored, want those of one", got)
			}
			must[uint64](t)(b.Update(ctx, key, []byte("small"), second))
			if got := b.BlobBytes(); got != 0 {
				t.Errorf("got %d bytes of large values stored after an update with a small one, want 0", got)
			}
			must[uint64](t)(b.Put(ctx, key, value))
			if err := b.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
			if got := b.BlobBytes(); got != 0 {
				t.Errorf("got %d bytes of large values stored after the delete, want 0", got)
			}
		})
	}
}

// Readers that are concurrent with an update get the complete old or new value.
func TestBlob_UpdateIsAtomicForReaders(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 600<<10) }
	rev := must[uint64](t)(b.Create(ctx, "a", value(0)))
	var done atomic.Bool
	var wg sync.WaitGroup
	for reader := range 3 {
		wg.Go(func() {
			for !done.Load() {
				got := store.Entry{}
				var err error
				if reader == 0 {
					err = b.Scan(ctx, "", func(e store.Entry) error { got = e; return nil })
				} else {
					got, err = b.Get(ctx, "a")
				}
				if err != nil || len(got.Value) != 600<<10 || !bytes.Equal(got.Value, value(int(got.Value[0]))) {
					t.Errorf("got %d bytes and error %v, want a complete value", len(got.Value), err)
					return
				}
			}
		})
	}
	for i := 1; i < 40; i++ {
		rev = must[uint64](t)(b.Update(ctx, "a", value(i), rev))
	}
	done.Store(true)
	wg.Wait()
}

func TestBlob_CountsInShare(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t, func(c *store.Config) { c.MaxBytes = 20 << 20 })
	b := bucket(t, s, store.BucketConfig{Share: 0.25})
	n := fill(t, func(i int) error { _, err := b.Create(ctx, fmt.Sprint(i), make([]byte, 1<<20)); return err })
	if n != 4 {
		t.Errorf("got %d values of 1 MiB in a share of 5 MiB, want 4", n)
	}
	if got := b.BlobBytes(); got > 4<<20+10_000 {
		t.Errorf("got %d bytes stored, want those of 4 values: the rejected one must not be stored", got)
	}
}

func TestBlob_RemovesOldOrphans(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir)
	b := bucket(t, s, store.BucketConfig{})
	must[uint64](t)(b.Put(ctx, "kept.a", randomBytes(600<<10)))
	if err := b.StoreOrphanBlob(ctx, "orphan.a", randomBytes(600<<10)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		later time.Duration
		want  uint64 // blobs
	}{
		{"young", store.OrphanAge / 2, 2},
		{"old", store.OrphanAge * 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, dir, func(c *store.Config) { c.Now = func() time.Time { return time.Now().Add(tt.later) } })
			b := bucket(t, s, store.BucketConfig{})
			if got := b.BlobBytes() / (600 << 10); got != tt.want {
				t.Errorf("got %d large values stored, want %d", got, tt.want)
			}
			if got, err := b.Get(ctx, "kept.a"); err != nil || len(got.Value) != 600<<10 {
				t.Errorf("value with a key: got %d bytes and error %v, want %d and nil", len(got.Value), err, 600<<10)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestBlob_ReportsDamage(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	must[uint64](t)(b.Put(ctx, "a", randomBytes(600<<10)))
	must[uint64](t)(b.Put(ctx, "b", []byte("fine")))
	b.DeleteBlobs(ctx)
	_, err := b.Get(ctx, "a")
	wantErr(t, "get", err, store.ErrDamaged)
	wantErr(t, "scan", b.Scan(ctx, "", func(store.Entry) error { return nil }), store.ErrDamaged)
	if _, err := b.Put(ctx, "a", []byte("again")); err != nil {
		t.Errorf("put after the damage: got error %v, want nil", err)
	}
	if got := keys(t, b, ""); len(got) != 2 {
		t.Errorf("got keys %q, want both", got)
	}
}

func TestBucket_UsageIncludesLargeValues(t *testing.T) {
	s := teststore.Open(t, func(c *store.Config) { c.MaxBytes = 64 << 20 })
	usage := func(b *store.Bucket) float64 { return must[float64](t)(b.Usage(t.Context())) }
	b := bucket(t, s, store.BucketConfig{Name: "A", Share: 0.5})
	if got := usage(b); got != 0 {
		t.Errorf("empty bucket: got usage %g, want 0", got)
	}
	must[uint64](t)(b.Put(t.Context(), "small", make([]byte, 100<<10)))
	small := usage(b)
	must[uint64](t)(b.Put(t.Context(), "large", make([]byte, 16<<20)))
	if got := usage(b); small <= 0 || small > 0.01 || got < 0.5 || got > 0.6 {
		t.Errorf("got usage %g and then %g, want up to 0.01 and then 0.5 to 0.6", small, got)
	}
	if got := usage(bucket(t, s, store.BucketConfig{Name: "B"})); got != 0 {
		t.Errorf("bucket without a share: got usage %g, want 0", got)
	}
}
