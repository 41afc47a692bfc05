package audit

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

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
