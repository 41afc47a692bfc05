package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func durable(c *store.Config) { c.SyncEvery = 0 }

// BenchmarkFsync appends as many bytes to a file and syncs it, which is the lower bound of a
// durable append.
func BenchmarkFsync(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "lower-bound"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	data := make([]byte, 1000)
	for b.Loop() {
		if _, err := file.Write(data); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	l := openLog(b, teststore.Open(b, durable), store.LogConfig{})
	data := make([]byte, 1000)
	for b.Loop() {
		if _, err := l.Append(b.Context(), "log.a", data, store.AppendOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	bk := bucket(b, teststore.Open(b), store.BucketConfig{})
	must[uint64](b)(bk.Put(b.Context(), "a", make([]byte, 1000)))
	for b.Loop() {
		if _, err := bk.Get(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan reads 10,000 keys among 100,000.
func BenchmarkScan(b *testing.B) {
	bk := bucket(b, teststore.Open(b), store.BucketConfig{})
	for i := range 100_000 {
		key := fmt.Sprint("req.", i)
		if i%10 == 0 {
			key = fmt.Sprint("open.", i)
		}
		must[uint64](b)(bk.Put(b.Context(), key, nil))
	}
	for b.Loop() {
		n := 0
		err := bk.Scan(b.Context(), "open.", func(store.Entry) error { n++; return nil })
		if err != nil || n != 10_000 {
			b.Fatalf("got %d keys and error %v, want 10000 and nil", n, err)
		}
	}
}

// BenchmarkScanSmall reads all of ten keys.
func BenchmarkScanSmall(b *testing.B) {
	bk := bucket(b, teststore.Open(b), store.BucketConfig{})
	for i := range 10 {
		must[uint64](b)(bk.Put(b.Context(), fmt.Sprint("key.", i), make([]byte, 100)))
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := len(keys(b, bk, "")); got != 10 {
			b.Fatalf("got %d keys, want 10", got)
		}
	}
}

func BenchmarkOpenAndClose(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := store.Open(b.Context(), store.Config{Dir: dir, SyncEvery: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpenChecks opens a store with 64 MiB in two logs. Open checks the newest 8 MiB of
// each, or all of them if there is no valid index.
func BenchmarkOpenChecks(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	for _, name := range []string{"A", "B"} {
		l := openLog(b, s, store.LogConfig{Name: name, Subjects: []string{name + ".>"}})
		data := randomBytes(64 << 10)
		for range 512 {
			must[uint64](b)(l.Append(b.Context(), name+".x", data, store.AppendOptions{}))
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for _, killed := range []bool{false, true} {
		b.Run(fmt.Sprintf("killed=%v", killed), func(b *testing.B) {
			b.Run("open", func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					removeIndex(b, dir, killed)
					b.StartTimer()
					s, err := store.Open(b.Context(), store.Config{Dir: dir, SyncEvery: time.Minute})
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
			b.Run("check", func(b *testing.B) {
				removeIndex(b, dir, killed)
				for b.Loop() {
					if damage, err := store.RepairAtStart(dir); len(damage) > 0 || err != nil {
						b.Fatal(damage, err)
					}
				}
			})
		})
	}
}

// removeIndex removes the indexes if killed is set, because an engine writes none if it is killed
// by SIGKILL.
func removeIndex(b *testing.B, dir string, killed bool) {
	if !killed {
		return
	}
	for _, name := range []string{"A", "B"} {
		if err := os.Remove(streamFile(dir, name, "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			b.Fatal(err)
		}
	}
}
