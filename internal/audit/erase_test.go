package audit

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/remnants"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// onDisk reports whether the bytes can be decrypted in any file of the store, in contents of these
// requests.
func (d *logFixture) onDisk(needle string, ids ...string) bool {
	d.t.Helper()
	var places []string
	for _, id := range ids {
		for _, kind := range []Kind{KindDecision, KindOutcome, KindToolCall} {
			for _, part := range []string{"content", "answer"} {
				places = append(places, string(contentContext(&Record{Kind: kind, RequestID: id}, part)))
			}
		}
	}
	found := false
	for _, r := range remnants.Read(d.t, d.dir, teststore.Keys(), places...) {
		if bytes.Contains(r.Data, []byte(needle)) {
			if found = true; !r.Decrypted {
				d.t.Errorf("%s contains %q in clear", r.Where, needle)
			}
		}
	}
	return found
}

// recordsWithSecret returns both records of a request, with a text to search for.
func recordsWithSecret(at time.Time, n int, secret string) []Record {
	decision, outcome := decisionOf(at, n), outcomeOf(at, n)
	decision.Content = fmt.Appendf(nil, `{"prompt":%q}`, secret)
	outcome.Content = bytes.Repeat([]byte(secret+" "), maxPart/len(secret)) // long enough to be stored separately
	return []Record{decision, outcome}
}

func (d *logFixture) erase(auditLog *Log, id string, want int) {
	d.t.Helper()
	if got, err := auditLog.Erase(d.t.Context(), id, &contract.Caller{Tenant: "acme", Subject: "ana"}, 0); err != nil || got != want {
		d.t.Fatalf("got %d contents of %s erased, error %v, want %d", got, id, err, want)
	}
}

func (d *logFixture) find(auditLog *Log, id string) RequestRecords {
	d.t.Helper()
	found, err := auditLog.Find(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return found
}

// appendConcurrently appends the records concurrently, so that they share messages.
func (d *logFixture) appendConcurrently(auditLog *Log, records ...Record) {
	d.t.Helper()
	var wg sync.WaitGroup
	for _, rec := range records {
		wg.Go(func() {
			if err := auditLog.Append(context.Background(), rec); err != nil {
				d.t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestErase_RemovesContents(t *testing.T) {
	for _, after := range []string{"by the index", "by a search"} {
		t.Run(after, func(t *testing.T) {
			d := newLogFixture(t)
			auditLog := d.open()
			now := time.Now()
			const secret, kept = "the-secret-of-number-one", "what-number-two-may-keep"
			d.appendConcurrently(auditLog, append(recordsWithSecret(now, 1, secret), recordsWithSecret(now, 2, kept)...)...)
			if !d.onDisk(secret, uuid7(now, 1)) {
				t.Fatal("got no content on disk before the erasure")
			}
			if after == "by a search" {
				d.close(auditLog)
				auditLog = d.open()
			}
			d.erase(auditLog, uuid7(now, 1), 2)
			if d.onDisk(secret, uuid7(now, 1)) {
				t.Error("got the erased bytes on disk")
			}
			for _, rec := range []*Record{d.find(auditLog, uuid7(now, 1)).Decision, d.find(auditLog, uuid7(now, 1)).Outcome} {
				if rec == nil || rec.Content != nil || !rec.Erased || rec.Subject != "ana" {
					t.Errorf("got %+v, want the facts, and that the content is erased", rec)
				}
			}
			found := d.find(auditLog, uuid7(now, 2))
			if !bytes.Contains(found.Decision.Content, []byte(kept)) || !bytes.Contains(found.Outcome.Content, []byte(kept)) {
				t.Error("got no contents of the other request, want them kept")
			}
			d.erase(auditLog, uuid7(now, 1), 0) // a second time
			d.erase(auditLog, uuid7(now, 3), 0) // an unknown request
			d.erase(auditLog, "not-an-id", 0)
			d.erase(auditLog, uuid7(now, 2), 2)
			if d.onDisk(kept, uuid7(now, 2)) {
				t.Error("got the bytes of the other request on disk after its erasure, want none")
			}
			d.close(auditLog)
			report := d.verify()
			if !report.OK() || report.ErasedContents != 4 || report.Contents != 0 {
				t.Errorf("got problems %v, %d erased, %d stored, want none, 4, 0", report.Problems, report.ErasedContents, report.Contents)
			}
		})
	}
}

// Calls of tools are erased with their request, or by their own id.
func TestErase_RemovesToolCalls(t *testing.T) {
	for _, after := range []string{"by the index", "by a search"} {
		t.Run(after, func(t *testing.T) {
			d := newLogFixture(t)
			auditLog := d.open()
			now := time.Now()
			const secret, alone = "the-secret-of-a-call", "the-secret-of-another-call"
			d.append(auditLog, decisionOf(now, 1), toolCallOf(now, 1, `{"a":"`+secret+`"}`), toolCallOf(now, 1, `{"b":"`+secret+`"}`), outcomeOf(now, 1),
				toolCallOf(now, 2, `{"c":"`+alone+`"}`))
			if after == "by a search" {
				d.close(auditLog)
				auditLog = d.open()
			}
			if got := d.find(auditLog, uuid7(now, 2)).ToolCall; got == nil || got.Action != "weather.query" || !bytes.Contains(got.Content, []byte(alone)) {
				t.Errorf("got %+v, want the call of the tool", got)
			}
			d.erase(auditLog, uuid7(now, 1), 4)
			d.erase(auditLog, uuid7(now, 2), 1)
			if d.onDisk(secret, uuid7(now, 1)) || d.onDisk(alone, uuid7(now, 2)) {
				t.Error("got the erased bytes on disk")
			}
			d.close(auditLog)
			if report := d.verify(); !report.OK() || report.ErasedContents != 5 {
				t.Errorf("got problems %v and %d erased contents, want none and 5", report.Problems, report.ErasedContents)
			}
		})
	}
}

// An orchestration that waits for a person has records days after its id was made.
func TestErase_RemovesLateContents(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	begun, ended := d.now(), 72*time.Hour
	const secret = "the-secret-of-a-late-call"
	d.append(auditLog, toolCallOf(begun, 1, `{"a":"early"}`))
	d.clock.Add(int64(ended / time.Second))
	d.append(auditLog, outcomeOf(d.now(), 3)) // a search for a request ends here
	late := toolCallOf(d.now(), 2, `{"b":"`+secret+`"}`)
	late.RequestID = uuid7(begun, 1)
	d.append(auditLog, late)
	d.close(auditLog)
	auditLog = d.open() // the index is empty
	if got, err := auditLog.Erase(t.Context(), late.RequestID, &contract.Caller{Tenant: "acme", Subject: "ana"}, ended); err != nil || got != 2 {
		t.Errorf("got %d contents erased and error %v, want 2", got, err)
	}
	if d.onDisk(secret, late.RequestID) {
		t.Error("got the erased bytes on disk")
	}
	d.close(auditLog)
	if report := d.verify(); !report.OK() || report.ErasedContents != 2 {
		t.Errorf("got problems %v and %d erased contents, want none and 2", report.Problems, report.ErasedContents)
	}
}

// An erasure that is interrupted after any of its steps is completed by the next one.
func TestErase_CompletesInterruptedErasure(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now()
	const secret = "an-interrupted-secret"
	d.append(auditLog, recordsWithSecret(now, 1, secret)[0], outcomeOf(now, 2))
	b, err := auditLog.readBatch(t.Context(), auditLog.index.lookUp(uuid7(now, 1)).decision)
	if err != nil {
		t.Fatal(err)
	}
	// Write the copy without the content, without deleting the original.
	b.removeContent(int(auditLog.index.lookUp(uuid7(now, 1)).decision.pos - b.first))
	if _, err := d.log.Append(t.Context(), fmt.Sprintf("%s%d", auditLog.subjects.withoutContents, b.number), b.encodeBatch(), store.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	d.erase(auditLog, uuid7(now, 1), 1)
	if d.onDisk(secret, uuid7(now, 1)) {
		t.Error("got the erased bytes on disk")
	}
	d.close(auditLog)
	if report := d.verify(); !report.OK() || report.ErasedContents != 1 {
		t.Errorf("got problems %v, %d erased, want none, 1", report.Problems, report.ErasedContents)
	}
}

// Contents expire and the chain is trimmed step by step, with an erasure in between. The chain
// verifies after every step, and no record is removed too early.
func TestEnforceRetention_ExpiresContentsAndTrims(t *testing.T) {
	d := newLogFixture(t)
	const contents, keep = 100, 300 // in seconds
	auditLog := d.open(func(c *Config) {
		c.Retention = Retention{Contents: contents * time.Second, Chain: keep * time.Second}
	})
	type request struct {
		id     string
		second int64
		erased bool
	}
	var requests []*request
	for round := range 60 {
		for range 2 {
			r := &request{id: uuid7(d.now(), len(requests)), second: d.clock.Load()}
			rec := outcomeOf(d.now(), len(requests))
			rec.RequestID = r.id
			d.append(auditLog, rec)
			requests = append(requests, r)
		}
		if round%7 == 3 {
			r := requests[len(requests)-3]
			d.erase(auditLog, r.id, 1)
			r.erased = true
		}
		d.clock.Add(10)
		if round%2 == 0 {
			continue
		}
		if err := auditLog.EnforceRetention(t.Context()); err != nil {
			t.Fatal(err)
		}
		if round == 31 { // with a restart in between
			d.close(auditLog)
			auditLog = d.open(func(c *Config) {
				c.Retention = Retention{Contents: contents * time.Second, Chain: keep * time.Second}
			})
		}
		if report := d.verifySigned(); !report.OK() {
			t.Fatalf("round %d: got problems %v, want none", round, report.Problems)
		}
	}
	page, err := auditLog.Read(t.Context(), Query{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]*Record{}
	for i := range page.Records {
		there[page.Records[i].RequestID] = &page.Records[i]
	}
	for n, r := range requests {
		age := d.clock.Load() - r.second
		rec := there[r.id]
		switch {
		case age == contents || age == keep: // at the limit, because the real clock advances as well
		case age > keep && rec != nil:
			t.Errorf("got the content of request %d, which is %d s old, want it expired", n, age)
		case age < keep && rec == nil:
			t.Errorf("got no content of request %d, which is %d s old, want it kept", n, age)
		case rec != nil && rec.Erased != (r.erased || age > contents):
			t.Errorf("request %d is %d s old: got erased %t", n, age, rec.Erased)
		}
	}
	info, err := d.log.Info(t.Context())
	if err != nil || info.Msgs > 120 {
		t.Errorf("got %d messages in the log (error %v), want at most 120", info.Msgs, err)
	}
}

// Contents that are too old expire at the start, not at the next interval.
func TestStartRetention_EnforcesRetention(t *testing.T) {
	d := newLogFixture(t)
	written := make(chan struct{}, 100)
	auditLog := d.open(func(c *Config) {
		c.Retention.Contents = time.Minute
		c.OnWrite = func(int, time.Duration, error) { written <- struct{}{} }
	})
	now := time.Now()
	d.append(auditLog, outcomeOf(now, 1))
	testkit.WaitClosed(t, written)
	d.clock.Add(3600)
	auditLog.StartRetention()
	testkit.Receive(t, written)                                    // the record of the expiry
	if err := auditLog.EnforceRetention(t.Context()); err != nil { // after the expiry
		t.Fatal(err)
	}
	if found := d.find(auditLog, uuid7(now, 1)); found.Outcome == nil {
		t.Error("got no facts after the content expired, want them kept")
	}
	d.close(auditLog)
	if report := d.verify(); !report.OK() || report.ExpiredContents != 1 {
		t.Errorf("got problems %v, %d expired, want none, 1", report.Problems, report.ExpiredContents)
	}
}

// A burst is trimmed during the burst, not at the next interval.
func TestStartRetention_TrimsAfterBurst(t *testing.T) {
	const most = 1 << 20
	d := newLogFixture(t)
	auditLog := d.open(func(c *Config) { c.Retention.MaxBytes = most })
	auditLog.StartRetention()
	rec := outcomeOf(time.Now(), 1)
	rec.Content = bytes.Repeat([]byte("x"), 64<<10)
	for range 64 { // four times the limit
		d.append(auditLog, rec)
	}
	testkit.Eventually(t, "the log is trimmed to its limit", func() bool {
		info, err := d.log.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.Bytes <= most
	})
	d.close(auditLog)
	if report := d.verify(); !report.OK() {
		t.Errorf("got problems %v, want none, because the trimming is recorded", report.Problems)
	}
}
