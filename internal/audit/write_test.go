package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
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
