package audit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

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
