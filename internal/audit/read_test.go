package audit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// readAll follows the cursor to the end and returns the ids in order.
func (d *logFixture) readAll(auditLog *Log, q Query) (ids []string, pages int) {
	d.t.Helper()
	for {
		page, err := auditLog.Read(d.t.Context(), q)
		if err != nil {
			d.t.Fatal(err)
		}
		for i := range page.Records {
			ids = append(ids, page.Records[i].RequestID)
		}
		pages++
		if page.Next == q.Cursor {
			return ids, pages
		}
		if q.Cursor = page.Next; pages > 1000 {
			d.t.Fatal("got no end of the pages")
		}
	}
}

func TestRead_FiltersRecords(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now().Add(-time.Minute)
	var all []string
	for n := range 30 {
		d.append(auditLog, decisionOf(now.Add(time.Duration(n)*time.Second), n), outcomeOf(now.Add(time.Duration(n)*time.Second), n))
		all = append(all, uuid7(now.Add(time.Duration(n)*time.Second), n))
	}
	even := func(rec *Record) bool { return rec.TraceID[31]%2 == 0 }
	var evens []string
	for n := range all {
		if fmt.Sprintf("%032x", n)[31]%2 == 0 {
			evens = append(evens, all[n])
		}
	}
	tests := []struct {
		name  string
		query Query
		want  []string
	}{
		{"all", Query{}, all},
		{"one by one", Query{Limit: 1}, all},
		{"seven by seven", Query{Limit: 7}, all},
		{"scanning three at a time", Query{MaxScan: 3}, all},
		{"some", Query{Filter: even}, evens},
		{"filtered, scanning five at a time", Query{Filter: even, MaxScan: 5, Limit: 2}, evens},
		{"since", Query{Since: now.Add(20 * time.Second), Limit: 3}, all[20:]},
		{"since after all records", Query{Since: now.Add(time.Hour)}, nil},
		{"none", Query{Filter: func(*Record) bool { return false }, MaxScan: 10}, nil},
	}
	rewrite := []func(){
		func() {},
		func() { // one in the middle, one at the start
			d.erase(auditLog, all[15], 2)
			d.erase(auditLog, all[0], 2)
		},
		func() { // all of them, except at the end
			for _, id := range all {
				if _, err := auditLog.Erase(t.Context(), id, &contract.Caller{Tenant: "acme", Subject: "ana"}, 0); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
	for i, change := range rewrite {
		change()
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, rewrite %d", tt.name, i), func(t *testing.T) {
				got, _ := d.readAll(auditLog, tt.query)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A reader at the end continues with new records, even if records that it has read are rewritten.
func TestRead_ContinuesAtCursor(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	page, err := auditLog.Read(t.Context(), Query{})
	if err != nil || len(page.Records) > 0 || page.Next == "" {
		t.Fatalf("empty log: got %d records, next %q, error %v", len(page.Records), page.Next, err)
	}
	for n := range 20 {
		d.append(auditLog, outcomeOf(now, n))
		if n%3 == 1 {
			d.erase(auditLog, uuid7(now, n-1), 1)
		}
		page, err = auditLog.Read(t.Context(), Query{Cursor: page.Next})
		if err != nil || len(page.Records) != 1 || page.Records[0].RequestID != uuid7(now, n) {
			t.Fatalf("page %d: got %d records, error %v, want request %d alone", n, len(page.Records), err, n)
		}
	}
}

func TestRead_RejectsInvalidCursor(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	d.append(auditLog, outcomeOf(time.Now(), 1))
	for _, cursor := range []string{"x", "1", "-", "1-", "-1", "0-0", "1-0", "01-1", "1-1-1", "1-zzz", "zzz-1", "A-1", "1-1 ", "+1-1", "1_1"} {
		_, err := auditLog.Read(t.Context(), Query{Cursor: cursor})
		got, ok := errors.AsType[*contract.Error](err)
		if !ok || got.Code != contract.CodeInvalidRequest || len(got.Details) != 1 || got.Details[0].Pointer != "/cursor" {
			t.Errorf("cursor %q: got error %v, want %s at /cursor", cursor, err, contract.CodeInvalidRequest)
		}
	}
}

func TestUUIDTime_ReadsVersion7(t *testing.T) {
	at := time.UnixMilli(1_772_366_400_123)
	tests := []struct {
		name, id string
		want     time.Time
	}{
		{"version 7", uuid7(at, 5), at},
		{"version 4", "6f9619ff-8b86-4011-b42d-00cf4fc964ff", time.Time{}},
		{"too short", "6f9619ff", time.Time{}},
		{"not hexadecimal", "zf9619ff-8b86-7011-b42d-00cf4fc964ff", time.Time{}},
		{"without dashes", "6f9619ff8b867011b42d00cf4fc964ff", time.Time{}},
		{"empty", "", time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := uuidTime(tt.id)
			if ok != !tt.want.IsZero() || !got.Equal(tt.want) {
				t.Errorf("got %s, %t, want %s", got, ok, tt.want)
			}
		})
	}
}

func TestRecentIndex_DropsTheOldest(t *testing.T) {
	x := newIndex(3)
	for n := range 5 {
		id := fmt.Sprint(n)
		b := &batch{number: uint64(n + 1), first: uint64(2*n + 1)}
		x.addBatch(nil, b, uint64(n+1), []indexedRecord{
			{id: id, kind: KindDecision, pos: b.first}, {id: id, kind: KindOutcome, pos: b.first + 1}, {id: id, kind: KindAdmin, pos: b.first + 2},
		})
	}
	for n := range 5 {
		got, want := x.lookUp(fmt.Sprint(n)), requestRefs{}
		if n >= 2 {
			want = requestRefs{
				decision: recordRef{seq: uint64(n + 1), number: uint64(n + 1), pos: uint64(2*n + 1)},
				outcome:  recordRef{seq: uint64(n + 1), number: uint64(n + 1), pos: uint64(2*n + 2)},
			}
		}
		if got.decision != want.decision || got.outcome != want.outcome {
			t.Errorf("request %d: got %+v, want %+v", n, got, want)
		}
	}
	if len(x.refs) != 3 {
		t.Errorf("got %d requests, want 3", len(x.refs))
	}
}

func TestFind_SearchesBeyondTheIndex(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	for n := range 10 {
		d.append(auditLog, outcomeOf(now, n))
	}
	auditLog.index = newIndex(2)
	for n := range 10 {
		if found, err := auditLog.Find(t.Context(), uuid7(now, n)); err != nil || found.Outcome.RequestID != uuid7(now, n) {
			t.Errorf("request %d: got %+v, error %v", n, found, err)
		}
	}
	old := uuid7(now.Add(-30*time.Hour), 3)
	if _, err := auditLog.Find(t.Context(), old); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("request of the previous day: got error %v, want %v", err, store.ErrNotFound)
	}
}
