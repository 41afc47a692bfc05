package audit

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// While a batch is written, one tenant appends many large records and then another tenant a small
// one, which must be in the next batch.
func TestAppend_WritesRecordOfLightTenantInNextBatch(t *testing.T) {
	const loud = 40
	d := newLogFixture(t)
	auditLog := d.open()
	started, proceed := make(chan struct{}, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	defer release()
	var once sync.Once
	var mu sync.Mutex
	var batches []map[string]int // records by tenant
	observe := appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		once.Do(func() {
			started <- struct{}{}
			<-proceed
		})
		b, err := decodeBatch(data)
		if err != nil {
			return 0, err
		}
		tenants := map[string]int{}
		for i := range b.entries {
			rec, err := b.decodeRecord(i)
			if err != nil {
				return 0, err
			}
			tenants[rec.Tenant]++
		}
		mu.Lock()
		defer mu.Unlock()
		batches = append(batches, tenants)
		return d.log.Append(ctx, subject, data, opts)
	})
	d.lose.Store(&observe)
	var callers sync.WaitGroup
	appendAs := func(tenant string, n, size int) {
		callers.Go(func() {
			rec := outcomeOf(time.Now(), n)
			rec.Tenant, rec.Content = tenant, bytes.Repeat([]byte("x"), size)
			if err := auditLog.Append(t.Context(), rec); err != nil {
				t.Error(err)
			}
		})
	}
	appendAs("loud", 0, 10)
	testkit.Receive(t, started)
	for n := range loud {
		appendAs("loud", 1+n, 60<<10)
	}
	awaitQueued(t, auditLog, loud)
	appendAs("quiet", 1+loud, 10)
	awaitQueued(t, auditLog, loud+1)
	release()
	callers.Wait()
	d.lose.Store(nil)
	if len(batches) < 3 || batches[1]["quiet"] != 1 {
		t.Errorf("got batches %v, want the record of the quiet tenant in the second one, and others after it", batches)
	}
	d.close(auditLog)
	d.checkVerified(loud + 2 + 2)
}

func awaitQueued(t *testing.T, auditLog *Log, want int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprint(want, " queued records"), func() bool { return auditLog.queue.Len() == want })
}

// The writer reports the result, and the caller does not wait for it.
func TestSubmit_ReportsResult(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	proceed := make(chan struct{})
	hold := appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		<-proceed
		return d.log.Append(ctx, subject, data, opts)
	})
	d.lose.Store(&hold)
	written := make(chan error, 1)
	submit := func(rec Record) error {
		return auditLog.Submit(t.Context(), rec, func(err error) { written <- err })
	}
	if err := submit(outcomeOf(time.Now(), 1)); err != nil {
		t.Fatal(err)
	}
	close(proceed)
	if err := testkit.Receive(t, written); err != nil {
		t.Errorf("got %v, want a record that is written", err)
	}
	d.lose.Store(nil)
	d.close(auditLog)
	for _, rec := range []Record{outcomeOf(time.Now(), 2), {Kind: KindAdmin, Event: EventErase}} {
		if err := submit(rec); err == nil || len(written) != 0 {
			t.Errorf("%s: got error %v and %d results, want only an error", rec.Kind, err, len(written))
		}
	}
	if queued := auditLog.limiter.queued.Load(); queued != 0 {
		t.Errorf("got %d queued bytes, want none", queued)
	}
}

// If the writer stops before it has written what is queued, every record gets a result.
func TestSubmit_ReportsLossOfQueuedRecords(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	hang := appendFunc(func(ctx context.Context, _ string, _ []byte, _ store.AppendOptions) (uint64, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	d.lose.Store(&hang)
	const records = 3
	results := make(chan error, records)
	for n := range records {
		if err := auditLog.Submit(t.Context(), outcomeOf(time.Now(), n), func(err error) { results <- err }); err != nil {
			t.Fatal(err)
		}
	}
	d.kill(auditLog)
	for range records {
		if err := testkit.Receive(t, results); err == nil {
			t.Error("got a record that is written, want an error")
		}
	}
}
