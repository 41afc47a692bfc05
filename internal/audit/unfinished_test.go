package audit

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
)

func TestUnfinished_ReportsOpenRequests(t *testing.T) {
	d := newLogFixture(t)
	now := time.Now()
	ids := func(records []Record) (got []string) {
		for _, rec := range records {
			if rec.Kind != KindDecision || len(rec.Content) == 0 {
				t.Errorf("got %s with %d bytes of content, want a decision with its content", rec.Kind, len(rec.Content))
			}
			got = append(got, rec.RequestID)
		}
		return got
	}
	check := func(auditLog *Log, want ...string) {
		t.Helper()
		left, err := auditLog.Unfinished(t.Context())
		if diff := cmp.Diff(want, ids(left)); err != nil || diff != "" {
			t.Errorf("error %v, unfinished (-want +got):\n%s", err, diff)
		}
	}
	auditLog := d.open()
	check(auditLog)
	d.append(auditLog, decisionOf(now, 1), decisionOf(now, 2), outcomeOf(now, 1), decisionOf(now, 3), decisionOf(now, 3))
	check(auditLog) // this process has appended them
	d.kill(auditLog)

	auditLog = d.open()
	d.append(auditLog, decisionOf(now, 4))
	check(auditLog, uuid7(now, 2), uuid7(now, 3))
	d.append(auditLog, outcomeOf(now, 3))
	d.kill(auditLog)

	auditLog = d.open()
	check(auditLog, uuid7(now, 2), uuid7(now, 4))
	d.append(auditLog, decisionOf(now, 5))
	d.close(auditLog) // its own requests have ended, but those of earlier processes are open

	auditLog = d.open()
	check(auditLog, uuid7(now, 2), uuid7(now, 4))
	d.append(auditLog, outcomeOf(now, 2), outcomeOf(now, 4))
	d.close(auditLog)
	check(d.open())
}

// A trim that was interrupted, or is in progress, leaves rewritten batches whose outcomes were
// removed with other batches.
func TestUnfinished_IgnoresTrimmedDecisions(t *testing.T) {
	for name, restart := range map[string]bool{"interrupted": true, "in progress": false} {
		t.Run(name, func(t *testing.T) {
			d := newLogFixture(t)
			now := time.Now()
			auditLog := d.open()
			var before uint64
			var mark *ChainPosition
			for n := range 3 {
				d.append(auditLog, decisionOf(now, n), outcomeOf(now, n))
			}
			d.append(auditLog, decisionOf(now, 3))
			for n := range 3 {
				decided, err := auditLog.readBatch(t.Context(), auditLog.index.lookUp(uuid7(now, n)).decision)
				must(t, err)
				before, mark = decided.seq, decided.endPosition()
				must(t, auditLog.rewriter.rewrite(t.Context(), auditLog.storedChain, decided, func(int) bool { return true }))
			}
			if !restart {
				d.kill(auditLog)
				auditLog = d.open()
			}
			must(t, auditLog.announce(t.Context(), &Record{Kind: KindAdmin, Event: EventCheckpoint, Chain: auditLog.writer, UpTo: mark}))
			must(t, auditLog.retainer.remove(t.Context(), auditLog.storedChain, trimStep{before: before}))
			if restart {
				d.kill(auditLog)
				auditLog = d.open()
			}
			left, err := auditLog.Unfinished(t.Context())
			must(t, err)
			if len(left) != 1 || left[0].RequestID != uuid7(now, 3) {
				t.Errorf("got %d unfinished requests, want 1: %+v", len(left), left)
			}
		})
	}
}

// After each step of a trim, a kill leaves no decision without its outcome.
func TestTrim_KeepsOutcomesOfDecisions(t *testing.T) {
	d := newLogFixture(t)
	now := time.Now()
	auditLog := d.open()
	const requests = 5
	for n := range requests {
		d.append(auditLog, decisionOf(now, n), outcomeOf(now, n))
	}
	for n := range requests {
		decided, err := auditLog.readBatch(t.Context(), auditLog.index.lookUp(uuid7(now, n)).decision)
		must(t, err)
		must(t, auditLog.rewriter.rewrite(t.Context(), auditLog.storedChain, decided, func(int) bool { return true }))
	}
	plan, err := auditLog.planTrim(t.Context(), trimLimits{excess: 1 << 40, end: auditLog.end.Load().number})
	must(t, err)
	if len(plan.steps) < 3 {
		t.Fatalf("got steps %+v, want rewritten batches between others", plan.steps)
	}
	must(t, auditLog.announce(t.Context(), &Record{Kind: KindAdmin, Event: EventCheckpoint, Chain: auditLog.writer, UpTo: plan.mark}))
	for i, step := range plan.steps {
		must(t, auditLog.retainer.remove(t.Context(), auditLog.storedChain, step))
		d.kill(auditLog)
		auditLog = d.open()
		for n := range requests {
			found, err := auditLog.Find(t.Context(), uuid7(now, n))
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if found.Decision != nil && found.Outcome == nil {
				t.Errorf("after step %d of %+v: request %d: got a decision and no outcome", i, plan.steps, n)
			}
		}
		if report := d.verify(); len(report.Problems) > 0 {
			t.Errorf("after step %d: got problems %+v", i, report.Problems)
		}
	}
}
