package audit

import (
	"slices"
	"testing"

	"github.com/caprouter/caprouter/internal/quota"
)

func TestRecordQueue_HoldsDelayedRecords(t *testing.T) {
	q := newRecordQueue()
	push := func(id string, delayed bool) {
		t.Helper()
		p := &pendingRecord{id: id, delayed: delayed, usage: recordUsage{owner: quota.Owner{Tenant: id}}}
		if err := q.push(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range q.take() {
			got = append(got, p.id)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got records %v, want %v", when, got, want)
		}
	}
	push("a", true)
	expect("a delayed record alone")
	push("b", false)
	expect("beside another one", "a", "b")
	push("c", true)
	expect("behind a batch")
	if !q.startDelay() || q.startDelay() {
		t.Error("want one delay for all delayed records")
	}
	q.endDelay()
	expect("after the delay", "c")
	push("d", true)
	q.close()
	expect("when the log is closed", "d")
	if q.urgent != 0 || q.due {
		t.Errorf("got %d urgent, due %v in an empty queue, want none", q.urgent, q.due)
	}
}
