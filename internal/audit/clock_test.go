package audit

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
)

// The clock of the first process is wrong by hours, and correct again after a restart: all records
// are found, by the process that wrote them and by later ones.
func TestFind_AfterClockWasSetBack(t *testing.T) {
	for _, ahead := range []time.Duration{20 * time.Minute, 3 * time.Hour, 100 * time.Hour} {
		d := newLogFixture(t)
		now := d.now()
		var ids []string
		run := func(at time.Time) *Log {
			auditLog := d.open(func(c *Config) { c.Now = func() time.Time { return at } })
			for n := range 5 {
				rec := outcomeOf(at.Add(time.Duration(n)*time.Second), len(ids))
				d.append(auditLog, rec)
				ids = append(ids, rec.RequestID)
			}
			return auditLog
		}
		find := func(when string, auditLog *Log, life time.Duration) {
			t.Helper()
			for n, id := range ids {
				if found, err := auditLog.FindWithin(t.Context(), id, life); err != nil || found.Outcome == nil {
					t.Errorf("%s ahead, %s: request %d: got %+v, %v, want its records", ahead, when, n, found, err)
				}
			}
			page, err := auditLog.Read(t.Context(), Query{Since: now})
			if err != nil || len(page.Records) != len(ids) {
				t.Errorf("%s ahead, %s: got %d records since then, %v, want %d", ahead, when, len(page.Records), err, len(ids))
			}
		}
		d.close(run(now))
		d.close(run(now.Add(ahead)))
		third := run(now.Add(time.Minute))
		find("after it was set back", third, time.Minute)
		d.kill(third)
		later := run(now.Add(2 * time.Minute))
		find("after a kill", later, time.Minute)
		d.close(later)
		last := run(now.Add(ahead + time.Hour))
		find("when the time is reached", last, time.Minute)
		d.close(last)
		if report := d.verify(); !report.OK() {
			t.Errorf("%s ahead: got problems %v, want none", ahead, report.Problems)
		}
	}
}

// The clock was ahead by years for a moment. What was recorded then does not keep the records before
// and after it beyond their retention.
func TestEnforceRetention_AfterClockWasSetBack(t *testing.T) {
	const day = 24 * 3600
	d := newLogFixture(t)
	auditLog := d.open(func(c *Config) { c.Retention = Retention{Contents: day * time.Second, Chain: 3 * day * time.Second} })
	var ids []string
	record := func(second int64) {
		d.clock.Store(second)
		rec := outcomeOf(d.now(), len(ids))
		d.append(auditLog, rec)
		ids = append(ids, rec.RequestID)
	}
	check := func(when string, want ...string) {
		t.Helper()
		if err := auditLog.EnforceRetention(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, id := range ids {
			switch found, err := auditLog.Find(t.Context(), id); {
			case errors.Is(err, store.ErrNotFound):
				got = append(got, "gone")
			case err != nil:
				t.Fatal(err)
			case found.Outcome.Erased:
				got = append(got, "facts")
			default:
				got = append(got, "whole")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: records (-want +got):\n%s", when, diff)
		}
	}
	record(0)
	record(3650 * day)
	record(60)
	check("at once", "whole", "whole", "whole")
	record(2 * day)
	check("after two days", "facts", "facts", "facts", "whole")
	record(6 * day)
	check("after six days", "gone", "gone", "gone", "gone", "whole")
	d.close(auditLog)
	if report := d.verify(); !report.OK() {
		t.Errorf("got problems %v, want none", report.Problems)
	}
}
