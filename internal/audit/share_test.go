package audit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A tenant that fills the log faster than its contents are evicted is rejected before the log is
// full, so that others can write, and none of their records is trimmed.
func TestAppend_StopsHeaviestTenantFirst(t *testing.T) {
	d, auditLog := newShareFixture(t)
	now := time.Now()
	var err error
	record := func(n int, tenant string, bytes int) Record {
		rec := outcomeOf(now, n)
		rec.Tenant, rec.Content = tenant, make([]byte, bytes)
		return rec
	}
	quiet := record(0, "quiet", 2_000)
	d.append(auditLog, quiet)
	n := 1
	for ; err == nil && n < 2_000; n++ {
		if n%10 == 0 {
			d.append(auditLog, record(n, "quiet", 2_000))
		}
		err = auditLog.Append(t.Context(), record(10_000+n, "flooder", 20_000))
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatalf("after %d records: got error %v, want %v", n, err, store.ErrFull)
	}
	for i := range 20 {
		d.append(auditLog, record(20_000+i, "quiet", 2_000))
	}
	if err := auditLog.EnforceRetention(t.Context()); err != nil {
		t.Fatalf("evict contents from a log that is nearly full: %v", err)
	}
	d.append(auditLog, record(30_000, "flooder", 20_000))
	if got, err := auditLog.Find(t.Context(), quiet.RequestID); err != nil || got.Outcome == nil || got.Outcome.Content == nil {
		t.Errorf("first record of the other tenant: got %+v and error %v, want its content", got, err)
	}
	d.close(auditLog)
	if report := d.verify(); !report.OK() || report.First != 1 {
		t.Errorf("got problems %v, first record %d, want none, and 1", report.Problems, report.First)
	}
}

// newShareFixture returns a log of which a tenant may use a quarter, and that evicts only on request.
func newShareFixture(t *testing.T) (*logFixture, *Log) {
	t.Helper()
	d := newLogFixture(t, func(c *store.Config) { c.MaxBytes = 32 << 20 })
	log, err := d.store.Log(t.Context(), LogConfig(0.25))
	if err != nil {
		t.Fatal(err)
	}
	d.log = log
	auditLog := d.open(func(c *Config) {
		c.Retention.MaxBytes, c.Retention.Share, c.Retention.KeepFacts = 7_500_000, 0.25, true
	})
	if err := auditLog.retainer.loadUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d, auditLog
}

// A tenant that writes faster than its contents are evicted is rejected when it exceeds its share,
// not when the log is full, because others would be rejected as well.
func TestAdmit_RejectsTenantFarAboveItsShare(t *testing.T) {
	d, auditLog := newShareFixture(t)
	now := time.Now()
	for n := range 150 { // 3 MB of 1.9
		rec := outcomeOf(now, n)
		rec.Tenant, rec.Content = "flooder", make([]byte, 20_000)
		d.append(auditLog, rec)
	}
	flooder, quiet := &contract.Caller{Tenant: "flooder"}, &contract.Caller{Tenant: "quiet"}
	if e, ok := errors.AsType[*contract.Error](auditLog.Admit(flooder)); !ok || e.Code != contract.CodeQuotaExceeded {
		t.Errorf("tenant above its share: got %v, want %s", e, contract.CodeQuotaExceeded)
	}
	if err := auditLog.Admit(quiet); err != nil {
		t.Errorf("another tenant: got %v, want it admitted", err)
	}
	if err := auditLog.EnforceRetention(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := auditLog.Admit(flooder); err != nil {
		t.Errorf("after its contents were evicted: got %v, want it admitted", err)
	}
}

// Queued records count as well: together they must not fill the log.
func TestAppend_CountsQueuedRecords(t *testing.T) {
	d, auditLog := newShareFixture(t)
	now := time.Now()
	rec := outcomeOf(now, 0)
	rec.Tenant, rec.Content = "flooder", make([]byte, 300_000)
	d.append(auditLog, rec)
	release, blocked := make(chan struct{}), make(chan struct{}, 64)
	write := appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		select {
		case blocked <- struct{}{}:
		default:
		}
		<-release
		return d.log.Append(ctx, subject, data, opts)
	})
	d.lose.Store(&write)
	results := make(chan error, 64)
	for n := range cap(results) { // 19 MB, of a log of 8.4
		go func() {
			rec := outcomeOf(now, 1+n)
			rec.Tenant, rec.Content = "flooder", make([]byte, 300_000)
			results <- auditLog.Append(t.Context(), rec)
		}()
	}
	testkit.Receive(t, blocked)
	rejected := 0
	for rejected < 30 { // before any record is written
		if err := testkit.Receive(t, results); !errors.Is(err, store.ErrFull) {
			t.Fatalf("got %v, want %v", err, store.ErrFull)
		}
		rejected++
	}
	close(release)
	for range cap(results) - rejected {
		if err := testkit.Receive(t, results); err != nil && !errors.Is(err, store.ErrFull) {
			t.Error(err)
		}
	}
	d.lose.Store(nil)
	quiet := outcomeOf(now, 1000)
	quiet.Tenant, quiet.Content = "quiet", make([]byte, 2_000)
	d.append(auditLog, quiet)
}
