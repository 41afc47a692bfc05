package audit

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func TestAppend_RecordsAreFound(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now().UTC().Truncate(time.Microsecond)
	decision, outcome := decisionOf(now, 1), outcomeOf(now, 1)
	d.append(auditLog, decision, outcome, outcomeOf(now, 2))

	want := RequestRecords{Decision: &decision, Outcome: &outcome}
	for _, open := range []string{"by the index", "by a search"} {
		found, err := auditLog.Find(t.Context(), decision.RequestID)
		if diff := cmp.Diff(want, found, ignored); err != nil || diff != "" {
			t.Errorf("%s: error %v, found (-want +got):\n%s", open, err, diff)
		}
		if _, err := auditLog.Find(t.Context(), uuid7(now, 3)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got error %v for an unknown request, want %v", open, err, store.ErrNotFound)
		}
		d.close(auditLog)
		auditLog = d.open()
	}
	d.close(auditLog)
	d.checkVerified(3 + 2*3) // each start and stop is a record
}

// A record of feedback is written long after its request, and is not one of the records that a
// lookup of the request returns.
func TestAppend_FeedbackIsNoOutcome(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	now := time.Now().UTC().Truncate(time.Microsecond)
	decision, outcome := decisionOf(now, 1), outcomeOf(now, 1)
	feedback := Record{
		Kind: KindFeedback, At: now.Add(48 * time.Hour), RequestID: decision.RequestID, Subject: "ana", Note: "misroute", Agents: []string{"expected"},
	}
	d.append(auditLog, decision, outcome, feedback)

	want := RequestRecords{Decision: &decision, Outcome: &outcome}
	for _, open := range []string{"by the index", "by a search"} {
		found, err := auditLog.Find(t.Context(), decision.RequestID)
		if diff := cmp.Diff(want, found, ignored); err != nil || diff != "" {
			t.Errorf("%s: error %v, found (-want +got):\n%s", open, err, diff)
		}
		page, err := auditLog.Read(t.Context(), Query{})
		if err != nil || len(page.Records) != 1 || page.Records[0].Kind != KindOutcome {
			t.Errorf("%s: got records %+v, error %v, want the outcome", open, page.Records, err)
		}
		if left, err := auditLog.Unfinished(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("%s: got unfinished %+v, error %v, want none", open, left, err)
		}
		d.close(auditLog)
		auditLog = d.open()
	}
	if n, err := auditLog.Erase(t.Context(), decision.RequestID, &contract.Caller{Tenant: "acme", Subject: "ana"}, 0); err != nil || n != 2 {
		t.Errorf("got %d contents erased, error %v, want 2", n, err)
	}
	d.close(auditLog)
	d.checkVerified(3 + 2*3 + 1) // each start and stop is a record, and the erasure
}

func TestAppend_RejectsInvalidRecords(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	tests := []struct {
		name string
		rec  Record
	}{
		{"no kind", Record{}},
		{"unknown kind", Record{Kind: "remark"}},
		{"kind of the log itself", Record{Kind: KindAdmin, Event: EventErase}},
		{"event of the log itself", Record{Kind: KindOutcome, Event: EventStop}},
		{"mark of the log itself", Record{Kind: KindOutcome, UpTo: &ChainPosition{}}},
		{"too many facts", Record{Kind: KindOutcome, Note: string(make([]byte, maxFacts))}},
		{"content too long", Record{Kind: KindOutcome, Content: make([]byte, MaxContentSize+1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := auditLog.Append(t.Context(), tt.rec); !errors.Is(err, errInvalidRecord) {
				t.Errorf("got error %v, want %v", err, errInvalidRecord)
			}
		})
	}
	d.close(auditLog)
	if err := auditLog.Append(t.Context(), outcomeOf(time.Now(), 1)); !errors.Is(err, ErrClosed) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("after Close: got error %v, want %v", err, ErrClosed)
	}
	d.checkVerified(2)
}

func TestOpen_RejectsInvalidConfig(t *testing.T) {
	d := newLogFixture(t)
	tests := []struct {
		name   string
		change func(*Config)
	}{
		{"no log", func(c *Config) { c.Log = nil }},
		{"no keys", func(c *Config) { c.Keys = nil }},
		{"no signer", func(c *Config) { c.Signer = nil }},
		{"no head file", func(c *Config) { c.HeadFile = "" }},
		{"head file in a missing directory", func(c *Config) { c.HeadFile = filepath.Join(d.dir, "no", "folder") }},
		{"writer with a dot", func(c *Config) { c.Writer = "a.b" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Config{Log: d.log, Keys: teststore.Keys(), Signer: testKey, HeadFile: d.headFile()}
			tt.change(&cfg)
			if auditLog, err := Open(t.Context(), cfg); err == nil {
				d.close(auditLog)
				t.Error("got a log, want an error")
			}
		})
	}
}

func TestAppend_StoresContentsOfEverySize(t *testing.T) {
	d := newLogFixture(t)
	auditLog := d.open()
	sizes := []int{0, 1, maxInline - 1, maxInline, maxInline + 1, maxPart, maxPart + 1, 3*maxPart + 7}
	var wg sync.WaitGroup
	at := time.Now()
	for n, size := range sizes {
		wg.Go(func() {
			rec := outcomeOf(at, n)
			rec.Content = bytes.Repeat([]byte{'a' + byte(n)}, size)
			if err := auditLog.Append(t.Context(), rec); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for n, size := range sizes {
		found, err := auditLog.Find(t.Context(), uuid7(at, n))
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Outcome.Content; len(got) != size || got == nil || bytes.Count(got, []byte{'a' + byte(n)}) != size {
			t.Errorf("size %d: got %d bytes (nil: %t)", size, len(got), got == nil)
		}
	}
	d.close(auditLog)
	if report := d.checkVerified(len(sizes) + 2); report.Contents != uint64(len(sizes)) {
		t.Errorf("got %d contents, want %d", report.Contents, len(sizes))
	}
}

// All waiting callers share messages within the size limits, and each record is stored once.
func TestAppend_GroupsCallers(t *testing.T) {
	d := newLogFixture(t)
	var batches, records atomic.Int64
	auditLog := d.open(func(c *Config) {
		c.OnWrite = func(n int, took time.Duration, err error) {
			batches.Add(1)
			records.Add(int64(n))
			if err != nil || n > maxBatch || took < 0 {
				t.Errorf("observed %d records, %s, error %v", n, took, err)
			}
		}
	})
	const callers, each = 64, 20
	at := time.Now()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if err := auditLog.Append(t.Context(), outcomeOf(at, c*each+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	d.close(auditLog)
	if got := records.Load(); got != callers*each+1 {
		t.Errorf("observed %d records, want %d", got, callers*each+1)
	}
	if got := batches.Load(); got > callers*each/2 {
		t.Errorf("got %[2]d messages for %[1]d records, want fewer", callers*each, got)
	}
	d.checkVerified(callers*each + 2)
	seen := map[string]bool{}
	page, err := auditLog.Read(t.Context(), Query{Limit: 10 * callers * each})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range page.Records {
		seen[rec.RequestID] = true
	}
	if len(page.Records) != callers*each || len(seen) != callers*each {
		t.Errorf("read %d records of %d requests, want %d", len(page.Records), len(seen), callers*each)
	}
}

func TestAppend_EndsWithContext(t *testing.T) {
	d := newLogFixture(t)
	stuck, free := make(chan struct{}), make(chan struct{})
	hold := appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		close(stuck)
		<-free
		d.lose.Store(nil)
		return d.log.Append(ctx, subject, data, opts)
	})
	auditLog := d.open()
	d.lose.Store(&hold)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() { got <- auditLog.Append(ctx, outcomeOf(time.Now(), 1)) }()
	testkit.WaitClosed(t, stuck)
	cancel()
	if err := testkit.Receive(t, got); !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got error %v, want both %v and %v", err, context.Canceled, store.ErrUnavailable)
	}
	close(free)
	d.append(auditLog, outcomeOf(time.Now(), 2))
	d.close(auditLog)
	d.checkVerified(4) // the first record was written in spite of it
}
