package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Sizes of the records of a request, in bytes.
const (
	decisionSize = 1600
	outcomeSize  = 2400
	maxBatch     = 256 // records, as in the audit log
)

// runEngine opens an engine, has the callers write the records of the requests, and prints
// the result.
func runEngine(ctx context.Context, name, dir string, callers, requests int) error {
	var r result
	start := time.Now()
	e, err := openEngine(ctx, name, dir)
	if err != nil {
		return err
	}
	r.OpenMillis = millis(time.Since(start))
	if callers > 0 {
		if err := writeRequests(ctx, e, callers, requests, &r); err != nil {
			return err
		}
	}
	r.RSSMiB = peakRSSMiB()
	if err := e.close(); err != nil {
		return err
	}
	if r.DiskMiB, err = diskMiB(dir); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// writeRequests measures the writes. A caller waits for the record of its decision and then
// for that of its outcome.
func writeRequests(ctx context.Context, e engine, callers, requests int, r *result) error {
	c := &committer{engine: e, queue: make(chan pending, 2*callers)}
	decision, outcome := randomBytes(decisionSize), randomBytes(outcomeSize)
	waits := make([]time.Duration, 2*requests)
	failed := make(chan error, 1)
	go func() { failed <- c.run(ctx) }()

	before, start := cpuTime(), time.Now()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := caller; i < requests; i += callers {
				for k, data := range [][]byte{decision, outcome} {
					sent := time.Now()
					done := make(chan struct{})
					c.queue <- pending{data, done}
					<-done
					waits[2*i+k] = time.Since(sent)
				}
			}
		})
	}
	wg.Wait()
	took, cpu := time.Since(start), cpuTime()-before
	close(c.queue)
	if err := <-failed; err != nil {
		return err
	}
	slices.Sort(waits)
	r.PerSecond = float64(requests) / took.Seconds()
	r.CPUMicros = float64(cpu.Microseconds()) / float64(requests)
	r.MeanBatch = float64(2*requests) / float64(c.batches)
	r.WaitP50Millis, r.WaitP99Millis = millis(waits[len(waits)/2]), millis(waits[len(waits)*99/100])
	return nil
}

// pending is a record that its caller waits for.
type pending struct {
	data []byte
	done chan struct{}
}

// committer writes all waiting records in one batch, as the audit log does.
type committer struct {
	engine  engine
	queue   chan pending
	batches int
}

func (c *committer) run(ctx context.Context) error {
	var failure error
	for first := range c.queue {
		batch := []pending{first}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case p, ok := <-c.queue:
				if more = ok; ok {
					batch = append(batch, p)
				}
			default:
				more = false
			}
		}
		records := make([][]byte, len(batch))
		for i, p := range batch {
			records[i] = p.data
		}
		if failure == nil {
			failure = c.engine.write(ctx, records)
		}
		c.batches++
		for _, p := range batch {
			close(p.done)
		}
	}
	return failure
}

// randomBytes returns data that cannot be compressed, as encrypted contents cannot.
func randomBytes(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data) // never fails
	return data
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func peakRSSMiB() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024 // KiB on Linux
}

func diskMiB(dir string) (float64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return float64(total) / (1 << 20), err
}
