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
