package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// replicaFixture is a store on a NATS server that several replicas use.
type replicaFixture struct {
	*logFixture
	heads *store.Bucket
}

// members verifies signatures of these keys.
type members []key

func (m members) verify(purpose, keyID string, data, sig []byte) bool {
	for _, k := range m {
		if k.Verify(purpose, keyID, data, sig) {
			return true
		}
	}
	return false
}

func newReplicaFixture(t testing.TB) *replicaFixture {
	t.Helper()
	dir := t.TempDir()
	d := &logFixture{t: t, dir: dir, store: teststore.OpenShared(t, teststore.Serve(t, dir, -1), "test")}
	var err error
	if d.log, err = d.store.Log(t.Context(), LogConfig(0)); err != nil {
		t.Fatal(err)
	}
	f := &replicaFixture{logFixture: d}
	if f.heads, err = d.store.Bucket(t.Context(), HeadsConfig()); err != nil {
		t.Fatal(err)
	}
	return f
}

// replica opens the log of a replica, whose key has its name.
func (f *replicaFixture) replica(name string, change ...func(*Config)) *Log {
	f.t.Helper()
	log, err := f.tryReplica(name, change...)
	if err != nil {
		f.t.Fatal(err)
	}
	return log
}

func (f *replicaFixture) tryReplica(name string, change ...func(*Config)) (*Log, error) {
	cfg := Config{
		Log: f.log, Keys: teststore.Keys(), Writer: name, Signer: key(name), HeadFile: f.headFile(name), Now: f.now,
		Heads: f.heads, Members: members{"a", "b", "c"}.verify, Logger: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	log, err := Open(f.t.Context(), cfg)
	if err == nil {
		f.t.Cleanup(func() { f.close(log) })
	}
	return log, err
}

func (f *replicaFixture) headFile(name string) string { return filepath.Join(f.dir, "head."+name) }

func TestReplicas_FindRecordsOfOthersAtOnce(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a := f.replica("a")
	f.append(a, decisionOf(at, 1), outcomeOf(at, 1)) // before b starts
	b := f.replica("b")
	for n := 2; n < 50; n++ {
		f.append(a, decisionOf(at, n))
		if found := f.find(b, uuid7(at, n)); found.Decision == nil || found.Outcome != nil {
			t.Fatalf("request %d: got %+v, want the decision", n, found)
		}
		f.append(a, outcomeOf(at, n))
		if found := f.find(b, uuid7(at, n)); found.Decision == nil || found.Outcome == nil || string(found.Outcome.Content) != string(outcomeOf(at, n).Content) {
			t.Fatalf("request %d: got %+v, want both records", n, found)
		}
	}
	if found := f.find(b, uuid7(at, 1)); found.Decision == nil || found.Outcome == nil {
		t.Errorf("got %+v, want the records written before the start", found)
	}
	if _, err := b.Find(t.Context(), uuid7(at, 99)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown request: got error %v, want %v", err, store.ErrNotFound)
	}
	b.index, a.index = newIndex(1), newIndex(1)
	for n := 1; n < 50; n++ {
		if found := f.find(b, uuid7(at, n)); found.Decision == nil || found.Outcome == nil {
			t.Fatalf("request %d, without the index: got %+v, want both records", n, found)
		}
	}
}

func TestReplicas_FenceSecondProcessWithSameWriter(t *testing.T) {
	f := newReplicaFixture(t)
	first := f.replica("a")
	second := f.replica("a", func(c *Config) { c.HeadFile = f.headFile("other") })
	f.append(second, decisionOf(time.Now(), 1))
	if err := first.Append(t.Context(), decisionOf(time.Now(), 2)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got error %v, want %v", err, store.ErrConflict)
	}
	testkit.WaitClosed(t, first.Fenced())
	f.append(second, decisionOf(time.Now(), 3))
}

// checkErased checks that both contents of a request are erased.
func (f *replicaFixture) checkErased(log *Log, id, secret string) {
	f.t.Helper()
	found := f.find(log, id)
	for _, rec := range []*Record{found.Decision, found.Outcome} {
		if rec == nil || !rec.Erased || rec.Content != nil {
			f.t.Errorf("got %+v, want an erased record", rec)
		}
	}
	if f.onDisk(secret, id) {
		f.t.Errorf("got %q in the files", secret)
	}
}

func TestReplicas_EraseInChainOfAnother(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a, b := f.replica("a"), f.replica("b")
	f.append(a, recordsWithSecret(at, 1, "the first secret")...)
	f.append(a, recordsWithSecret(at, 2, "the second secret")...) // the last of its chain
	f.erase(b, uuid7(at, 2), 2)
	f.checkErased(a, uuid7(at, 2), "the second secret")
	f.checkErased(b, uuid7(at, 2), "the second secret")
	f.append(a, decisionOf(at, 3)) // the chain continues after the removed message
	if isClosed(a.Fenced()) {
		t.Error("got the writer of the chain fenced")
	}
	f.kill(a)
	f.erase(b, uuid7(at, 1), 2)
	f.checkErased(b, uuid7(at, 1), "the first secret")
	f.erase(b, uuid7(at, 3), 1)
	a = f.replica("a") // its last batch was rewritten
	f.append(a, outcomeOf(at, 3))
	f.checkErased(a, uuid7(at, 1), "the first secret")
}

func TestReplicas_EraseSameBatchAtTheSameTime(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a, b := f.replica("a"), f.replica("b")
	const rounds = 20 // in most of them both requests are in one batch
	for round := range rounds {
		one, two := 2*round, 2*round+1
		done := make(chan error, 2)
		for _, n := range []int{one, two} {
			rec := decisionOf(at, n)
			rec.Content = fmt.Appendf(nil, `{"prompt":"secret %04d"}`, n)
			go func() { done <- a.Append(t.Context(), rec) }()
		}
		for range 2 {
			if err := testkit.Receive(t, done); err != nil {
				t.Fatal(err)
			}
		}
		for log, n := range map[*Log]int{a: one, b: two} {
			go func() {
				_, err := log.Erase(t.Context(), uuid7(at, n), &contract.Caller{Tenant: "acme", Subject: "ana"}, 0)
				done <- err
			}()
		}
		for range 2 {
			if err := testkit.Receive(t, done); err != nil {
				t.Fatal(err)
			}
		}
	}
	together := 0
	for round := range rounds {
		if a.index.lookUp(uuid7(at, 2*round)).decision.number == a.index.lookUp(uuid7(at, 2*round+1)).decision.number {
			together++
		}
	}
	if together == 0 {
		t.Error("got no two requests in one batch, want some")
	}
	for n := range 2 * rounds {
		if f.onDisk(fmt.Sprintf("secret %04d", n), uuid7(at, n)) {
			t.Errorf("got the content of request %d in the files", n)
		}
		if found := f.find(b, uuid7(at, n)); found.Decision == nil || !found.Decision.Erased {
			t.Errorf("request %d: got %+v, want an erased record", n, found)
		}
	}
}

// interrupted returns the outcome of an interrupted request.
func interrupted(_ context.Context, decision *Record) (*Record, error) {
	return &Record{Kind: KindOutcome, RequestID: decision.RequestID, Tenant: decision.Tenant, Status: contract.StatusFailed, Content: []byte("{}")}, nil
}

func TestReplicas_CloseChainOnce(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a, b, c := f.replica("a"), f.replica("b"), f.replica("c")
	const requests = 300 // more than a batch
	for n := range requests {
		f.append(a, decisionOf(at, n))
	}
	f.append(b, outcomeOf(at, 0)) // it was continued there
	f.append(a, outcomeOf(at, 1))
	f.kill(a)
	type result struct {
		closed int
		err    error
	}
	results := make(chan result, 2)
	for _, log := range []*Log{b, c} {
		go func() {
			var r result
			for {
				n, err := log.CloseChain(t.Context(), "a", interrupted)
				if r.closed += n; !errors.Is(err, store.ErrConflict) {
					r.err = err
					break
				}
			}
			results <- r
		}()
	}
	closed := 0
	for range 2 {
		r := testkit.Receive(t, results)
		if closed += r.closed; r.err != nil {
			t.Error(r.err)
		}
	}
	if closed != requests-2 {
		t.Errorf("got %d requests closed, want %d", closed, requests-2)
	}
	outcomes := f.outcomes(c)
	if len(outcomes) != requests {
		t.Errorf("got outcomes of %d requests, want %d", len(outcomes), requests)
	}
	for id, n := range outcomes {
		if n != 1 {
			t.Errorf("request %s: got %d outcomes, want 1", id, n)
		}
	}
	if left, err := f.replica("a").Unfinished(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("after the restart: got %d unfinished requests and error %v, want none", len(left), err)
	}
}

// outcomes counts the outcomes in all chains by request.
func (f *replicaFixture) outcomes(log *Log) map[string]int {
	f.t.Helper()
	got := map[string]int{}
	for _, c := range log.allChains() {
		err := c.walkBatches(f.t.Context(), store.ReadFrom{}, func(*batch) bool { return true }, func(_ uint64, b *batch) error {
			for i := range b.entries {
				rec, err := b.decodeRecord(i)
				if err != nil {
					return err
				}
				if rec.Kind == KindOutcome {
					got[rec.RequestID]++
				}
			}
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return got
}

// A process that was only slow is fenced after its chain was closed.
func TestReplicas_ClosedChainFencesItsWriter(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a, b := f.replica("a"), f.replica("b")
	f.append(a, decisionOf(at, 1))
	if n, err := b.CloseChain(t.Context(), "a", interrupted); n != 1 || err != nil {
		t.Fatalf("got %d requests closed, error %v, want 1", n, err)
	}
	err := a.Append(t.Context(), outcomeOf(at, 1))
	if !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "replica b took this one for gone") {
		t.Errorf("got error %v, want %v with the replica that closed the chain", err, store.ErrConflict)
	}
	testkit.WaitClosed(t, a.Fenced())
	if got := f.outcomes(b)[uuid7(at, 1)]; got != 1 {
		t.Errorf("got %d outcomes, want 1", got)
	}
	if n, err := b.CloseChain(t.Context(), "c", interrupted); n != 0 || err != nil {
		t.Errorf("unknown chain: got %d closed, error %v", n, err)
	}
}

// read returns the numbers of the requests on all pages.
func (f *replicaFixture) read(log *Log, q Query, between func(page int)) (got []string, cursor string) {
	f.t.Helper()
	for page := 0; ; page++ {
		p, err := log.Read(f.t.Context(), q)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, rec := range p.Records {
			got = append(got, rec.RequestID)
		}
		if len(p.Records) == 0 {
			return got, p.Next
		}
		q.Cursor = p.Next
		between(page)
	}
}

func TestReplicas_ReadInOrder(t *testing.T) {
	for _, since := range []time.Duration{0, -time.Minute} {
		t.Run(since.String(), func(t *testing.T) {
			f := newReplicaFixture(t)
			at := time.Now()
			logs := []*Log{f.replica("a"), f.replica("b"), f.replica("c")}
			var want []string
			for n := range 60 {
				f.append(logs[n*n%3], outcomeOf(at, n))
				want = append(want, uuid7(at, n))
			}
			f.erase(logs[0], want[59], 1) // the last one of its chain
			f.erase(logs[1], want[7], 1)
			f.erase(logs[1], want[8], 1)
			q := Query{Limit: 7}
			if since != 0 {
				q.Since = at.Add(since)
				if err := logs[2].retainer.loadUsage(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got, cursor := f.read(logs[2], q, func(page int) {
				switch page {
				case 0:
					f.erase(logs[1], want[3], 1) // was on the page
					f.erase(logs[0], want[20], 1)
				case 3:
					f.append(logs[1], outcomeOf(at, 60))
					want = append(want, uuid7(at, 60))
				}
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// The cursor is valid at every replica.
			f.append(logs[0], outcomeOf(at, 61))
			f.append(logs[2], outcomeOf(at, 62))
			for _, log := range logs {
				got, _ := f.read(log, Query{Cursor: cursor}, func(int) {})
				if diff := cmp.Diff([]string{uuid7(at, 61), uuid7(at, 62)}, got); diff != "" {
					t.Errorf("replica %s, after the cursor (-want +got):\n%s", log.writer, diff)
				}
			}
			if _, err := logs[0].Read(t.Context(), Query{Cursor: "zzzzzz-1-a"}); err == nil {
				t.Error("got a cursor ahead of the log accepted")
			}
		})
	}
}
