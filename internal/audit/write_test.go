package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

var (
	errLost = fmt.Errorf("the acknowledgement is lost: %w", store.ErrUnavailable)
	errFull = fmt.Errorf("no room: %w", store.ErrFull)
)

// The message is stored, but its acknowledgement is lost: the writer reads the log, and returns the
// actual result.
func TestAppend_ToleratesLostAcknowledgement(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	lose := appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		if _, err := d.log.Append(ctx, subject, data, opts); err != nil {
			return 0, err
		}
		return 0, errLost
	})
	now := time.Now()
	d.append(auditLog, outcomeOf(now, 1))
	d.lose.Store(&lose)
	d.append(auditLog, outcomeOf(now, 2), outcomeOf(now, 3))
	d.lose.Store(nil)
	d.append(auditLog, outcomeOf(now, 4))
	if found, err := auditLog.Find(t.Context(), uuid7(now, 2)); err != nil || found.Outcome == nil {
		t.Errorf("got %v, error %v: want the stored record found", found, err)
	}
	d.close(auditLog)
	d.checkVerified(4 + 2)
}

// The append of a message fails, but the message arrives after the next one was tried. It becomes a
// part of the chain, and no record is lost or stored twice.
func TestAppend_ToleratesLateMessage(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	d.append(auditLog, outcomeOf(now, 1))

	var late func()
	var tries atomic.Int64
	delay := appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		switch tries.Add(1) {
		case 1, 2: // twice, so that two messages may arrive late
			if late == nil {
				after := *opts.ExpectLast
				late = func() {
					if _, err := d.log.Append(t.Context(), subject, data, store.AppendOptions{ID: opts.ID, ExpectLast: &after}); err != nil {
						t.Error(err)
					}
				}
			}
			return 0, errLost
		case 3:
			late()
		}
		return d.log.Append(ctx, subject, data, opts)
	})
	d.lose.Store(&delay)
	for n := 2; n <= 3; n++ {
		if err := auditLog.Append(t.Context(), outcomeOf(now, n)); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("record %d: got error %v, want %v", n, err, store.ErrUnavailable)
		}
	}
	d.append(auditLog, outcomeOf(now, 4))
	d.close(auditLog)
	// 1, the late 2, and 4; 3 did not arrive
	d.checkVerified(3 + 2)
	page, err := auditLog.Read(t.Context(), Query{})
	if err != nil || len(page.Records) != 3 {
		t.Fatalf("got %d records, error %v, want 3", len(page.Records), err)
	}
	for i, n := range []int{1, 2, 4} {
		if got, want := page.Records[i].RequestID, uuid7(now, n); got != want {
			t.Errorf("record %d: got %s, want %s", i, got, want)
		}
	}
}

func TestAppend_FailsAfterAnotherWriter(t *testing.T) {
	d := newLogFixture(t)
	first := d.open()
	now := time.Now()
	d.append(first, outcomeOf(now, 1))
	second := d.open(func(c *Config) { c.HeadFile = d.headFile() + "2" })
	d.append(second, outcomeOf(now, 2))
	for n := range 3 {
		if err := first.Append(t.Context(), outcomeOf(now, 3+n)); !errors.Is(err, store.ErrConflict) {
			t.Errorf("append %d: got error %v, want %v", n, err, store.ErrConflict)
		}
	}
	d.append(second, outcomeOf(now, 6))
	d.close(first)
	d.close(second)
	if got := strings.Count(d.lines.String(), "another writer"); got != 1 {
		t.Errorf("got %d log lines, want one:\n%s", got, d.lines.String())
	}
	report, err := Verify(t.Context(), VerifyConfig{Log: d.log, HeadFile: d.headFile() + "2", Signer: testKey})
	if err != nil || report.Records != 3+1+3 {
		t.Errorf("got %d records, error %v, want 7", report.Records, err)
	}
}

// A full store rejects records, and accepts them again when space is free. No rejected record is in
// the chain.
func TestAppend_FailsWhenStoreIsFull(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	full := appendFunc(func(context.Context, string, []byte, store.AppendOptions) (uint64, error) { return 0, errFull })
	d.lose.Store(&full)
	for n := range 100 { // including the record of the start, which is delayed
		if err := auditLog.Append(t.Context(), outcomeOf(now, n)); !errors.Is(err, store.ErrFull) {
			t.Fatalf("got error %v, want %v", err, store.ErrFull)
		}
	}
	d.lose.Store(nil)
	d.append(auditLog, outcomeOf(now, 100))
	d.close(auditLog)
	d.checkVerified(1 + 2)
}

// The same with a store that is actually full.
func TestAppend_RecoversFromFullStore(t *testing.T) {
	d := newLogFixture(t, func(c *store.Config) { c.MaxBytes = 4 << 20 })
	log, err := d.store.Log(t.Context(), LogConfig(0.25))
	if err != nil {
		t.Fatal(err)
	}
	d.log = log
	auditLog := d.open(func(c *Config) { c.Retention.MaxBytes = 900 << 10 })
	now := time.Now()
	rec := outcomeOf(now, 1)
	rec.Content = make([]byte, 100<<10)
	written := 0
	for ; err == nil && written < 100; written++ {
		err = auditLog.Append(t.Context(), rec)
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatalf("after %d records: got error %v, want %v", written, err, store.ErrFull)
	}
	if _, err := auditLog.Find(t.Context(), rec.RequestID); err != nil {
		t.Errorf("read from a full store: %v", err)
	}
	if err := auditLog.EnforceRetention(t.Context()); err != nil {
		t.Fatalf("trim a full log: %v", err)
	}
	d.append(auditLog, outcomeOf(now, 2))
	d.close(auditLog)
	if report := d.verify(); !report.OK() || report.First == 1 {
		t.Errorf("got problems %v, first record %d, want none, and a trimmed start", report.Problems, report.First)
	}
}

// A full log reserves space for the record that announces a trim; without it, no space could be
// freed. A process that has just started does not know the stored size yet.
func TestAppend_KeepsSpaceToAnnounceTrim(t *testing.T) {
	for _, facts := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep facts %t", facts), func(t *testing.T) {
			d := newLogFixture(t, func(c *store.Config) { c.MaxBytes = 4 << 20 })
			log, err := d.store.Log(t.Context(), LogConfig(0.25))
			if err != nil {
				t.Fatal(err)
			}
			d.log = log
			now := time.Now()
			for _, bytes := range []int{100 << 10, 1 << 10, 0} {
				auditLog := d.open(func(c *Config) { c.Retention.MaxBytes, c.Retention.KeepFacts = 900<<10, facts })
				rec := outcomeOf(now, 1)
				rec.Content = make([]byte, bytes)
				err = nil
				for n := 0; err == nil && n < 2_000; n++ {
					err = auditLog.Append(t.Context(), rec)
				}
				if !errors.Is(err, store.ErrFull) {
					t.Fatalf("got error %v, want %v", err, store.ErrFull)
				}
				d.kill(auditLog)
			}
			auditLog := d.open(func(c *Config) { c.Retention.MaxBytes, c.Retention.KeepFacts = 900<<10, facts })
			auditLog.StartRetention()
			testkit.Eventually(t, "the log has space", func() bool {
				return auditLog.Append(t.Context(), outcomeOf(now, 2)) == nil
			})
			d.close(auditLog)
			if report := d.verify(); !report.OK() {
				t.Errorf("got problems %v, want none", report.Problems)
			}
		})
	}
}

// A log without free space, of an earlier version, frees space after its limit was raised.
func TestStartRetention_RecoversAfterLimitIsRaised(t *testing.T) {
	d := newLogFixture(t, func(c *store.Config) { c.MaxBytes = 4 << 20 })
	limit := func(share float64) {
		t.Helper()
		log, err := d.store.Log(t.Context(), LogConfig(share))
		if err != nil {
			t.Fatal(err)
		}
		d.log = log
	}
	limit(0.25)
	auditLog := d.open() // without its own limit, it uses all space
	now := time.Now()
	var err error
	for n := 0; err == nil && n < 20_000; n++ {
		rec := outcomeOf(now, n)
		if n < 100 {
			rec.Content = make([]byte, 10<<10)
		}
		err = auditLog.Append(t.Context(), rec)
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatalf("got error %v, want %v", err, store.ErrFull)
	}
	d.close(auditLog)
	limit(0.5)
	auditLog = d.open(func(c *Config) { c.Retention.MaxBytes = 900 << 10 })
	auditLog.StartRetention()
	testkit.Eventually(t, "the log is trimmed to its limit", func() bool {
		info, err := d.log.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.Bytes <= 900<<10
	})
	d.append(auditLog, outcomeOf(now, 30_000))
	d.close(auditLog)
	if report := d.verify(); !report.OK() {
		t.Errorf("got problems %v, want none", report.Problems)
	}
}

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

// The process is killed at any time: acknowledged records are stored, and the head is never ahead
// of the chain.
func TestOpen_ContinuesAfterKill(t *testing.T) {
	d := newLogFixture(t)
	now := time.Now()
	n := 0
	for range 10 {
		auditLog := d.open()
		for range 3 {
			d.append(auditLog, outcomeOf(now, n))
			n++
		}
		d.kill(auditLog)
		d.checkVerified(n + n/3) // one start for every three records
	}
	auditLog := d.open()
	d.close(auditLog)
	if report := d.checkVerified(n + n/3 + 2); report.Unsigned != 0 {
		t.Errorf("after Close: got %d unsigned batches, want none", report.Unsigned)
	}
}

// A problem that is found at the start is recorded in the chain, and stays visible after the next
// head was signed.
func TestOpen_RecordsTampering(t *testing.T) {
	now := time.Now()
	lastOf := func(d *logFixture) store.Message {
		m, err := d.log.Last(t.Context(), newChainSubjects(DefaultWriter).chain)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	tests := []struct {
		name string
		do   func(d *logFixture)
		want string
	}{
		{"end deleted", func(d *logFixture) { _ = d.log.Delete(t.Context(), lastOf(d).Seq) }, ProblemTruncated},
		{"no message left", func(d *logFixture) { _ = d.log.Purge(t.Context(), "audit.>") }, ProblemTruncated},
		{"head missing", func(d *logFixture) { _ = os.Remove(d.headFile()) }, ProblemMismatch},
		{"invalid head", func(d *logFixture) { _ = os.WriteFile(d.headFile(), []byte(`{"head":"1"}`), 0o600) }, ProblemMismatch},
		{"last batch replaced", func(d *logFixture) {
			m := lastOf(d)
			b, err := decodeMessage(m)
			if err != nil {
				t.Fatal(err)
			}
			_ = d.log.Delete(t.Context(), m.Seq)
			b.entries[0].facts = []byte(`{"kind":"outcome","at":"2026-01-01T00:00:00Z"}`)
			b.computeHashes()
			if _, err := d.log.Append(t.Context(), m.Subject, b.encodeBatch(), store.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
		}, ProblemAltered},
		{"end of the chain damaged", func(d *logFixture) {
			m := lastOf(d)
			_ = d.log.Delete(t.Context(), m.Seq)
			if _, err := d.log.Append(t.Context(), m.Subject, []byte("CRA1 nonsense"), store.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
		}, ProblemAltered},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newLogFixture(t)
			auditLog := d.open()
			d.append(auditLog, outcomeOf(now, 1), outcomeOf(now, 2), outcomeOf(now, 3))
			d.close(auditLog)
			tt.do(d)
			for range 2 {
				auditLog = d.open()
				d.append(auditLog, outcomeOf(now, 4))
				d.close(auditLog)
				report := d.verify()
				found := false
				for _, p := range report.Problems {
					found = found || p.Kind == tt.want
				}
				if !found {
					t.Errorf("got problems %v, want one with %q", report.Problems, tt.want)
				}
			}
			if !strings.Contains(d.lines.String(), "run caprouter audit verify") {
				t.Errorf("got no log line about it:\n%s", d.lines.String())
			}
		})
	}
}

func TestOpen_RecordsKeyChange(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	d.append(auditLog, outcomeOf(time.Now(), 1))
	d.close(auditLog)
	auditLog = d.open(func(c *Config) { c.Signer = key("two") })
	d.append(auditLog, outcomeOf(time.Now(), 2))
	d.close(auditLog)
	report, err := Verify(t.Context(), VerifyConfig{Log: d.log, HeadFile: d.headFile(), Signer: key("two")})
	if err != nil || !report.OK() || len(report.Notes) != 1 {
		t.Errorf("with the new key: error %v, problems %v, notes %q, want a note", err, report.Problems, report.Notes)
	}
	if report := d.verify(); len(report.Problems) != 1 || report.Problems[0].Kind != ProblemHeadUnknownKey {
		t.Errorf("with the old key: got problems %v, want %s", report.Problems, ProblemHeadUnknownKey)
	}
}

// A log that lost acknowledged records is not confused with another writer.
func TestLog_ContinuesAfterLostEnd(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	d.append(auditLog, outcomeOf(now, 1), outcomeOf(now, 2), outcomeOf(now, 3))
	if err := d.log.Delete(t.Context(), auditLog.end.Load().seq); err != nil {
		t.Fatal(err)
	}
	conflict := appendFunc(func(context.Context, string, []byte, store.AppendOptions) (uint64, error) {
		d.lose.Store(nil)
		return 0, store.ErrConflict
	})
	d.lose.Store(&conflict)
	d.append(auditLog, outcomeOf(now, 4))
	d.close(auditLog)
	report := d.verify()
	if len(report.Problems) != 1 || report.Problems[0].Kind != ProblemTruncated || report.Problems[0].Batch != 4 {
		t.Errorf("got problems %v, want batch 4 truncated", report.Problems)
	}
}
