package audit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/pagination"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// listAll follows the cursor to the end and returns the records in order, by writer and position.
func (d *logFixture) listAll(auditLog *Log, q ListQuery) (names []string) {
	d.t.Helper()
	for range 2000 {
		page, err := auditLog.List(d.t.Context(), q)
		if err != nil {
			d.t.Fatal(err)
		}
		if q.Limit > 0 && len(page.Records) > q.Limit {
			d.t.Fatalf("got %d records in a page, want at most %d", len(page.Records), q.Limit)
		}
		for i := range page.Records {
			if rec := &page.Records[i]; rec.Content != nil || rec.Answer != nil {
				d.t.Fatalf("record %d has a content", rec.Position)
			}
			names = append(names, recordName(&page.Records[i]))
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return names
		}
	}
	d.t.Fatal("got no end of the pages")
	return nil
}

func recordName(rec *Record) string { return fmt.Sprintf("%s-%d", rec.Writer, rec.Position) }

// walkAll returns the records of a chain that the query selects, newest first, by reading the
// chain forwards.
func (d *logFixture) walkAll(c *storedChain, q ListQuery) (names []string) {
	d.t.Helper()
	err := c.walkBatches(d.t.Context(), store.ReadFrom{}, func(*batch) bool { return true }, func(_ uint64, b *batch) error {
		for i := range b.entries {
			rec, err := b.decodeRecord(i)
			if err != nil {
				return err
			}
			if !rec.At.Before(q.Since) && (q.Until.IsZero() || !rec.At.After(q.Until)) && (q.Filter == nil || q.Filter(rec)) {
				names = append(names, recordName(rec))
			}
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	slices.Reverse(names)
	return names
}

func (d *logFixture) checkList(auditLog *Log, name string, q ListQuery) {
	d.t.Helper()
	if diff := cmp.Diff(d.walkAll(auditLog.storedChain, q), d.listAll(auditLog, q)); diff != "" {
		d.t.Errorf("%s: records (-want +got):\n%s", name, diff)
	}
}

func TestList_FiltersRecordsNewestFirst(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	start := time.Now().Add(-time.Hour)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * 15 * time.Second) }
	var erasable []string
	for n := range 80 {
		d.append(auditLog, decisionOf(at(n), n), toolCallOf(at(n), n, "{}"), outcomeOf(at(n), n))
		erasable = append(erasable, uuid7(at(n), n))
	}
	queries := map[string]ListQuery{
		"all":                     {},
		"seven by seven":          {Limit: 7},
		"one by one":              {Limit: 1, Since: at(70)},
		"scanning five at a time": {MaxScan: 5, Limit: 3, Until: at(20)},
		"tool calls":              {Filter: func(rec *Record) bool { return rec.Kind == KindToolCall }, Limit: 10},
		"none":                    {Filter: func(*Record) bool { return false }, MaxScan: 50},
		"since":                   {Since: at(50), Limit: 11},
		"until":                   {Until: at(30), Limit: 11},
		"between":                 {Since: at(40), Until: at(60), Limit: 11},
		"since after the end":     {Since: start.Add(2 * time.Hour)},
		"until before the start":  {Until: start.Add(-time.Hour)},
		"until the end of time":   {Until: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), Limit: 50},
		"since the end of time":   {Since: time.Date(10889, 8, 2, 0, 0, 0, 0, time.UTC)},
		"since, by another clock": {Since: at(50).In(time.FixedZone("", 24*3600))},
	}
	changes := []func(){
		func() {},
		func() { // batches in the middle and at the start are rewritten
			for _, n := range []int{0, 1, 38, 39, 40, 70} {
				d.erase(auditLog, erasable[n], 3)
			}
		},
		func() { // every batch except the last ones
			for _, id := range erasable {
				if _, err := auditLog.Erase(t.Context(), id, &contract.Caller{Tenant: "acme", Subject: "ana"}, 0); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
	for i, change := range changes {
		change()
		if got := d.listAll(auditLog, ListQuery{}); len(got) < 240 {
			t.Fatalf("change %d: got %d records, want more than 240", i, len(got))
		}
		for name, q := range queries {
			d.checkList(auditLog, fmt.Sprintf("%s, change %d", name, i), q)
		}
	}
	d.close(auditLog)
	reopened := d.open()
	for name, q := range queries {
		d.checkList(reopened, name+", after a restart", q)
	}
}

// Records that are added between two pages do not move the others.
func TestList_PagesStayWhenRecordsAreAdded(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	for n := range 30 {
		d.append(auditLog, outcomeOf(now, n))
	}
	q := ListQuery{Limit: 4}
	want, got := d.walkAll(auditLog.storedChain, ListQuery{}), []string(nil)
	for n := 30; ; n++ {
		page, err := auditLog.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Records {
			got = append(got, recordName(&page.Records[i]))
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
		d.append(auditLog, outcomeOf(now, n))
		d.erase(auditLog, uuid7(now, n-30), 1) // rewrites a batch that may be at the cursor
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// Any sequence of appended, erased and trimmed batches is listed as it is read forwards.
func TestList_ReversesTheChain(t *testing.T) {
	d := newLogFixture(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		// Each run has its own chain in one store, because opening a store is slow.
		auditLog := d.open(func(c *Config) {
			c.Writer = fmt.Sprintf("w%d", run)
			c.HeadFile = d.headFile() + "." + c.Writer
		})
		now := time.Now()
		for n := range rapid.IntRange(0, 100).Draw(rt, "records") {
			d.append(auditLog, outcomeOf(now, n))
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 99), 0, 20).Draw(rt, "erased") {
			if _, err := auditLog.Erase(t.Context(), uuid7(now, n), &contract.Caller{Tenant: "acme", Subject: "ana"}, 0); err != nil {
				rt.Fatal(err)
			}
		}
		q := ListQuery{Limit: rapid.IntRange(5, 50).Draw(rt, "limit"), MaxScan: rapid.IntRange(5, 50).Draw(rt, "scan")}
		if diff := cmp.Diff(d.walkAll(auditLog.storedChain, q), d.listAll(auditLog, q)); diff != "" {
			rt.Errorf("records (-want +got):\n%s", diff)
		}
		d.close(auditLog)
	})
}

func TestList_StartsAtTheCheckpoint(t *testing.T) {
	d := newLogFixture(t)
	d.clock.Store(-2 * 60 * 60)
	auditLog := d.open(func(c *Config) { c.Retention.Chain = time.Hour })
	d.clock.Store(0)
	old := time.Now().Add(-2 * time.Hour)
	for n := range 20 {
		d.append(auditLog, outcomeOf(old, n))
	}
	for n := range 10 {
		d.append(auditLog, outcomeOf(time.Now(), 100+n))
	}
	before := len(d.listAll(auditLog, ListQuery{}))
	for {
		more, err := auditLog.retainer.trimChain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	d.checkList(auditLog, "trimmed", ListQuery{Limit: 3})
	if after := len(d.listAll(auditLog, ListQuery{})); after >= before {
		t.Errorf("got %d records after the trim, want fewer than %d", after, before)
	}
}

// Batches that together exceed the window are read in several steps.
func TestList_ReadsLargeBatches(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	for n := range 2*maxWindowBytes/(maxInline-1000) + 5 {
		rec := outcomeOf(now, n)
		rec.Content = bytes.Repeat([]byte(" "), maxInline-1000)
		d.append(auditLog, rec)
	}
	d.checkList(auditLog, "large batches", ListQuery{})
}

// With the clock set back, later records are older.
func TestList_FindsRecordsBeforeClockWasSetBack(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	for n := range 5 {
		d.append(auditLog, outcomeOf(now.Add(time.Duration(n)*time.Second), n))
	}
	for n := range 5 {
		d.append(auditLog, outcomeOf(now.Add(24*time.Hour), 10+n))
	}
	for n := range 5 {
		d.append(auditLog, outcomeOf(now.Add(time.Minute), 20+n))
	}
	for name, q := range map[string]ListQuery{
		"since": {Since: now.Add(12 * time.Hour)}, "until": {Until: now.Add(12 * time.Hour)}, "all": {Limit: 2},
	} {
		d.checkList(auditLog, name, q)
	}
}

func TestList_RejectsInvalidCursor(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	d.append(auditLog, outcomeOf(time.Now(), 1))
	cursors := []string{"x", "1-1"}
	for _, id := range []string{"x", "1", "0-0", "1-0", "1-1 ", "zzz-1"} {
		cursors = append(cursors, pagination.Position{Created: time.Now(), ID: id}.Cursor())
	}
	for _, cursor := range cursors {
		_, err := auditLog.List(t.Context(), ListQuery{Cursor: cursor})
		got, ok := errors.AsType[*contract.Error](err)
		if !ok || got.Code != contract.CodeInvalidRequest || len(got.Details) != 1 || got.Details[0].Pointer != "/cursor" {
			t.Errorf("cursor %q: got error %v, want %s at /cursor", cursor, err, contract.CodeInvalidRequest)
		}
	}
}

func TestCopy_ListsRecords(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	for n := range 5 {
		d.append(auditLog, outcomeOf(now, n))
	}
	want := d.listAll(auditLog, ListQuery{})
	files, err := OpenCopy(t.Context(), d.dir, teststore.Keys())
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	page, err := files.List(t.Context(), ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range page.Records {
		got = append(got, recordName(&page.Records[i]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// Every replica lists the records of all in the same order.
func TestReplicas_ListAllChainsNewestFirst(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a, b := f.replica("a"), f.replica("b")
	var ids []string
	for n := range 40 {
		log := []*Log{a, b}[n/3%2]
		f.append(log, outcomeOf(at, n))
		ids = append(ids, uuid7(at, n))
	}
	slices.Reverse(ids)
	check := func(when string) {
		t.Helper()
		outcomes := func(rec *Record) bool { return rec.Kind == KindOutcome }
		for _, limit := range []int{1, 7, 1000} {
			for i, log := range []*Log{a, b} {
				var got []string
				q := ListQuery{Limit: limit, Filter: outcomes}
				for {
					page, err := log.List(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					for k := range page.Records {
						got = append(got, page.Records[k].RequestID)
					}
					if q.Cursor = page.Next; q.Cursor == "" {
						break
					}
				}
				if diff := cmp.Diff(ids, got); diff != "" {
					t.Errorf("%s, replica %d, limit %d: requests (-want +got):\n%s", when, i, limit, diff)
				}
			}
		}
	}
	check("as written")
	for _, n := range []int{39, 38, 20, 1, 0} {
		f.erase([]*Log{b, a}[n/3%2], uuid7(at, n), 1)
	}
	check("erased by the other one")
}

func TestErase_RecordsTheCaller(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	d.append(auditLog, decisionOf(now, 1), outcomeOf(now, 1))
	if _, err := auditLog.Erase(t.Context(), uuid7(now, 1), &contract.Caller{Tenant: "acme", Subject: "ana", Issuer: "idp"}, 0); err != nil {
		t.Fatal(err)
	}
	page, err := auditLog.List(t.Context(), ListQuery{Limit: 3})
	if err != nil || len(page.Records) != 3 {
		t.Fatalf("got %d records, error %v, want 3", len(page.Records), err)
	}
	rec := page.Records[0]
	if rec.Event != EventErase || rec.RequestID != uuid7(now, 1) || rec.Tenant != "acme" || rec.Subject != "ana" || rec.Issuer != "idp" {
		t.Errorf("got %+v, want the erasure by ana", rec)
	}
	for _, rec := range page.Records[1:] {
		if rec.RequestID != uuid7(now, 1) || rec.Status != outcomeOf(now, 1).Status && rec.Kind == KindOutcome || !rec.Erased {
			t.Errorf("got %+v, want the facts of the erased request", rec)
		}
	}
}
