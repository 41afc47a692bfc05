package requests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// newDurableStore returns a store that syncs every write to disk.
func newDurableStore(b *testing.B) *Store {
	b.Helper()
	s := teststore.Open(b, func(cfg *store.Config) { cfg.SyncEvery = 0 })
	bucket, err := s.Bucket(b.Context(), store.BucketConfig{Name: "REQUESTS"})
	if err != nil {
		b.Fatal(err)
	}
	return NewStore(bucket, quota.Unlimited())
}

// BenchmarkFsync measures the lower bound of a durable step: one record appended to a file, and one
// fsync.
func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	data, err := encodeRecord(testID, newRecord(testID))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := f.Write(data); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	requests := newDurableStore(b)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if err := requests.Create(b.Context(), newRecord(fmt.Sprint("r-", n))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	requests := newDurableStore(b)
	if err := requests.Create(b.Context(), newRecord(testID)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := requests.Update(b.Context(), testID, func(r *Record) error { return r.TakeOver(owner, now) }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTakeOver measures a start after a crash with 10,000 open requests: reading the index,
// and one step for each request.
func BenchmarkTakeOver(b *testing.B) {
	const n = 10_000
	bucket := openBucket(b)
	requests := NewStore(bucket, quota.Unlimited())
	ctx := b.Context()
	run.ForEach(ctx, 64, n, func(ctx context.Context, i int) {
		if err := requests.Create(ctx, newRecord(fmt.Sprint("r-", i))); err != nil {
			b.Error(err)
		}
	})
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			if ids, err := requests.ListOpen(ctx); err != nil || len(ids) != n {
				b.Fatal(len(ids), err)
			}
		}
	})
	b.Run("one at a time", func(b *testing.B) { takeAll(b, requests, 1) })
	b.Run("64 at a time", func(b *testing.B) { takeAll(b, requests, 64) })
}

func takeAll(b *testing.B, requests *Store, limit int) {
	b.Helper()
	for b.Loop() {
		ids, err := requests.ListOpen(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		run.ForEach(b.Context(), limit, len(ids), func(ctx context.Context, i int) {
			if _, err := requests.Update(ctx, ids[i], func(r *Record) error { return r.TakeOver(owner, now) }); err != nil {
				b.Error(err)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	r := newRecord(testID)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encodeRecord(r.ID, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := encodeRecord(testID, newRecord(testID))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeRecord(testID, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResultHash(b *testing.B) {
	for name, answer := range map[string]string{"one spelling": `"done"`, "several spellings": `"done\n"`} {
		b.Run(name, func(b *testing.B) {
			res := &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": json.RawMessage(answer)}}
			b.ReportAllocs()
			for b.Loop() {
				if ResultHash(res) == "" {
					b.Fatal("no hash")
				}
			}
		})
	}
}
