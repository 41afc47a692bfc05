package audit

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// For records in any order and with different clocks, no stored request is reported as unknown, and
// the memory is bounded.
func TestKnownRequests_HasNoFalseNegatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 20).Draw(t, "size")
		now := epoch()
		w := newKnownRequests(size, now)
		var ids []string
		for n := range rapid.IntRange(1, 100).Draw(t, "records") {
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "seconds")) * time.Second)
			id := uuid7(now.Add(clockSlack-time.Duration(rapid.IntRange(0, 7200).Draw(t, "seconds old"))*time.Second), n)
			if len(ids) > 0 && rapid.Bool().Draw(t, "a second record") {
				id = rapid.SampledFrom(ids).Draw(t, "of")
			}
			ids = append(ids, id)
			w.addRecords([]indexedRecord{{id: id, kind: KindOutcome}, {id: uuid7(now, 1000+n), kind: KindAdmin}}, now)
			for _, id := range ids {
				if wrote, all := w.lookUp(id); !wrote && all {
					t.Fatalf("got the stored %s unknown", id)
				}
			}
			if kept := len(w.young.ids) + len(w.old.ids); kept > size {
				t.Fatalf("got %d ids, want at most %d", kept, size)
			}
		}
	})
}

// TestFind_SkipsSearchForUnknownRequest uses up all searches, so that only requests that need no
// search get an answer.
func TestFind_SkipsSearchForUnknownRequest(t *testing.T) {
	d := newLogFixture(t)
	before := d.open()
	start := d.now()
	d.append(before, decisionOf(start, 1), outcomeOf(start, 1))
	old := uuid7(start, 1)
	d.close(before)

	d.clock.Store(3600)
	auditLog := d.open()
	at := d.now().Add(time.Hour)
	d.append(auditLog, decisionOf(at, 2), outcomeOf(at, 2))
	for range maxSearches {
		auditLog.searchSemaphore <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		id   string
		want error
	}{
		"of this process":                     {uuid7(at, 2), nil},
		"unknown, later than it":              {uuid7(at, 3), store.ErrNotFound},
		"unknown, much later":                 {uuid7(at.Add(time.Hour*10000), 3), store.ErrNotFound},
		"of the previous process":             {old, store.ErrUnavailable},
		"unknown, earlier":                    {uuid7(start, 3), store.ErrUnavailable},
		"unknown, within the clock tolerance": {uuid7(d.now().Add(clockSlack-time.Minute), 3), store.ErrUnavailable},
	} {
		// A cancelled caller that waits for a search gets ErrUnavailable; the others must not wait.
		if _, err := auditLog.Find(gone, tt.id); tt.want == store.ErrUnavailable && !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v, because it waits for a search", name, err, tt.want)
		}
		if tt.want == store.ErrUnavailable {
			continue
		}
		if _, err := auditLog.Find(t.Context(), tt.id); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
	for range maxSearches {
		testkit.Receive(t, auditLog.searchSemaphore)
	}
	if found, err := auditLog.Find(t.Context(), old); err != nil || found.Outcome == nil {
		t.Errorf("with free searches: got %+v, %v, want the request", found, err)
	}
}

// A search is limited to the time of the request; requests written by this process are found
// anywhere.
func TestFind_SearchesWithinTimeOfRequest(t *testing.T) {
	d := newLogFixture(t)
	at := d.now().Add(-10 * time.Hour)
	auditLog := d.open(func(c *Config) { c.Now = func() time.Time { return at } })
	late := outcomeOf(at.Add(3*time.Hour), 1)
	late.RequestID = uuid7(at, 1)
	d.append(auditLog, decisionOf(at.Add(time.Hour), 7))
	d.append(auditLog, decisionOf(at.Add(2*time.Hour), 8))
	d.append(auditLog, late)
	if found, err := auditLog.FindWithin(t.Context(), late.RequestID, time.Minute); err != nil || found.Outcome == nil {
		t.Errorf("in the process that wrote it: got %+v, %v, want the request", found, err)
	}
	auditLog.index = newIndex(1) // the index keeps one request
	if found, err := auditLog.FindWithin(t.Context(), late.RequestID, time.Minute); err != nil || found.Outcome == nil {
		t.Errorf("after its removal from the index: got %+v, %v, want the request", found, err)
	}
	d.close(auditLog)
	auditLog = d.open()
	if found, err := auditLog.FindWithin(t.Context(), late.RequestID, time.Minute); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("within a minute: got %+v, %v, want none", found, err)
	}
	if found, err := auditLog.FindWithin(t.Context(), late.RequestID, 4*time.Hour); err != nil || found.Outcome == nil {
		t.Errorf("within four hours: got %+v, %v, want the request", found, err)
	}
	if found, err := auditLog.Find(t.Context(), late.RequestID); err != nil || found.Outcome == nil {
		t.Errorf("got %+v, %v, want it", found, err)
	}
}

// A record whose write failed may still be stored, and is found then.
func TestFind_AfterFailedWrite(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	d.append(auditLog, decisionOf(d.now(), 1))
	at := d.now().Add(clockSlack) // the latest id that can be found
	var late func()
	d.lose.Store(new(appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		late = func() {
			if _, err := d.log.Append(t.Context(), subject, data, opts); err != nil {
				t.Error(err)
			}
		}
		return 0, store.ErrUnavailable
	})))
	if err := auditLog.Append(t.Context(), outcomeOf(at, 2)); err == nil {
		t.Fatal("got no error of a failed append, want one")
	}
	d.lose.Store(nil)
	late()
	if found, err := auditLog.Find(t.Context(), uuid7(at, 2)); err != nil || found.Outcome == nil {
		t.Errorf("got %+v, %v, want the outcome", found, err)
	}
	d.append(auditLog, outcomeOf(at, 3))
	if found, err := auditLog.Find(t.Context(), uuid7(at, 2)); err != nil || found.Outcome == nil {
		t.Errorf("after the next record: got %+v, %v, want the outcome", found, err)
	}
}

// If another process writes the chain, every unknown request is searched.
func TestKnownRequests_DisabledByAnotherWriter(t *testing.T) {
	w := newKnownRequests(10, epoch())
	id := uuid7(epoch().Add(time.Hour), 1)
	if _, all := w.lookUp(id); !all {
		t.Error("got an id unknown, want it searched")
	}
	w.disable()
	if _, all := w.lookUp(id); all {
		t.Error("got all ids known in a chain with another writer, want a search")
	}
}
