package audit

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// newBenchFixture returns a log that syncs to disk, as in production.
func newBenchFixture(b *testing.B) *logFixture {
	return newLogFixture(b, func(c *store.Config) { c.SyncEvery = 0 })
}

// benchRecord returns a record of typical size: 400 bytes of facts, 2 KiB of
// content.
func benchRecord(n int) Record {
	rec := outcomeOf(time.Time{}, n)
	rec.Content = bytes.Repeat([]byte("content "), 256)
	return rec
}

// BenchmarkFsync measures the lower bound: the same bytes written to a file and
// synced.
func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, 2600)
	for b.Loop() {
		if _, err := f.Write(data); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendAlone measures one caller that waits for each record.
func BenchmarkAppendAlone(b *testing.B) {
	d := newBenchFixture(b)
	auditLog := d.open()
	n := 0
	for b.Loop() {
		n++
		if err := auditLog.Append(b.Context(), benchRecord(n)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppend64 measures one record with 64 concurrent callers.
func BenchmarkAppend64(b *testing.B) {
	d := newBenchFixture(b)
	var batches atomic.Int64
	auditLog := d.open(func(c *Config) { c.OnWrite = func(int, time.Duration, error) { batches.Add(1) } })
	callers(b, func(n int) error { return auditLog.Append(b.Context(), benchRecord(n)) })
	b.ReportMetric(float64(b.N)/float64(batches.Load()), "records/batch")
}

// BenchmarkAppendBesideFlood measures the records of one tenant, while another one has 32
// callers with contents of 60 KiB.
func BenchmarkAppendBesideFlood(b *testing.B) {
	d := newBenchFixture(b)
	auditLog := d.open()
	ctx, stop := context.WithCancel(b.Context())
	var loud sync.WaitGroup
	var written atomic.Int64
	for c := range 32 {
		loud.Go(func() {
			for n := c; ctx.Err() == nil; n += 32 {
				rec := outcomeOf(time.Time{}, n)
				rec.Tenant, rec.Content = "loud", bytes.Repeat([]byte("content "), 7680)
				if auditLog.Append(ctx, rec) == nil {
					written.Add(1)
				}
			}
		})
	}
	n := 1 << 20
	for b.Loop() {
		n++
		if err := auditLog.Append(b.Context(), benchRecord(n)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(written.Load())/float64(b.N), "loud/op")
	b.ReportMetric(float64(written.Load())/b.Elapsed().Seconds(), "loud/s")
	stop()
	loud.Wait()
}

// BenchmarkUnbatched64 measures 64 concurrent callers without the log, each with
// its own message.
func BenchmarkUnbatched64(b *testing.B) {
	d := newBenchFixture(b)
	callers(b, func(n int) error {
		e, err := newEntry(new(benchRecord(n)), testRing)
		if err != nil {
			return err
		}
		one := batch{writer: "floor", number: 1, first: 1, entries: []batchEntry{e}}
		one.computeHashes()
		_, err = d.log.Append(b.Context(), "audit.floor", one.encodeBatch(), store.AppendOptions{})
		return err
	})
}

// callers distributes b.N calls over 64 goroutines.
func callers(b *testing.B, call func(n int) error) {
	b.Helper()
	const many = 64
	var next atomic.Int64
	done := make(chan error, many)
	b.ResetTimer()
	for range many {
		go func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := call(int(n)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range many {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
}

// BenchmarkFind reads a request that this process wrote.
func BenchmarkFind(b *testing.B) {
	d := newLogFixture(b)
	auditLog := d.open()
	at := time.Now()
	for n := range 1000 {
		d.append(auditLog, decisionOf(at, n), outcomeOf(at, n))
	}
	n := 0
	for b.Loop() {
		n++
		if _, err := auditLog.Find(b.Context(), uuid7(at, n%1000)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify measures one record of a chain in memory.
func BenchmarkVerify(b *testing.B) {
	c := newChain(b, 1)
	records := make([]Record, 64)
	for i := range records {
		records[i] = benchRecord(i)
	}
	const batches = 50
	for range batches {
		c.add(records...)
	}
	for b.Loop() {
		if report := verify(c.messages, c.head(), headTrusted); !report.OK() {
			b.Fatal(report.Problems)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batches/64, "ns/record")
}

// BenchmarkKnownRequests measures the cost of the known ids per record.
func BenchmarkKnownRequests(b *testing.B) {
	w := newKnownRequests(knownSize, epoch())
	ids := make([]string, 1<<16)
	for n := range ids {
		ids[n] = uuid7(epoch(), n)
	}
	n := 0
	for b.Loop() {
		w.addRecords([]indexedRecord{{id: ids[n%len(ids)], kind: KindOutcome}}, epoch())
		n++
	}
}
