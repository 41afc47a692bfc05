package audit

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// advance moves the clock of all replicas.
func (f *replicaFixture) advance(by time.Duration) { f.clock.Add(int64(by / time.Second)) }

func (f *replicaFixture) enforce(log *Log) {
	f.t.Helper()
	if err := log.retainer.loadUsage(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	if err := log.EnforceRetention(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// countMessages counts the messages of a chain.
func (f *replicaFixture) countMessages(writer string) (n int) {
	f.t.Helper()
	for _, subject := range []string{"audit." + writer, "audit." + writer + ".>"} {
		err := f.log.Read(f.t.Context(), store.ReadFrom{Subject: subject}, func(store.Message) error {
			n++
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return n
}

func TestReplicas_RetentionOfEndedReplica(t *testing.T) {
	f := newReplicaFixture(t)
	keep := func(c *Config) { c.Retention = Retention{Contents: 24 * time.Hour, Chain: 72 * time.Hour} }
	a, b := f.replica("a", keep), f.replica("b", keep)
	at := f.now()
	f.append(a, recordsWithSecret(at, 1, "an old secret")...)
	f.append(b, decisionOf(at, 2))
	f.kill(a)
	f.advance(24*time.Hour + time.Minute)
	f.enforce(b) // within the delay, only its own chain
	if found := f.find(b, uuid7(at, 1)); found.Decision.Erased {
		t.Error("got the contents of another replica removed before the delay")
	}
	if found := f.find(b, uuid7(at, 2)); !found.Decision.Erased {
		t.Error("got the contents of its own chain kept")
	}
	f.advance(takeoverDelay)
	f.enforce(b)
	f.checkErased(b, uuid7(at, 1), "an old secret")
	f.checkAllVerified("a", "b")

	f.advance(48 * time.Hour)
	f.append(b, decisionOf(f.now(), 3))
	f.enforce(b)
	if n := f.countMessages("a"); n != 0 {
		t.Errorf("got %d messages in the chain of the other replica", n)
	}
	report := f.checkAllVerified("b")
	if got := f.chainReport(report, "b").Records; got == 0 {
		t.Error("got an empty chain of the replica")
	}

	// The replica returns.
	a = f.replica("a", keep)
	at = f.now()
	f.append(a, decisionOf(at, 4))
	f.checkAllVerified("a", "b")
	if found := f.find(b, uuid7(at, 4)); found.Decision == nil {
		t.Error("got no record of the replica that returned")
	}
}

// Both replicas may trim and expire the same chain.
func TestReplicas_EnforceRetentionAtTheSameTime(t *testing.T) {
	f := newReplicaFixture(t)
	keep := func(c *Config) { c.Retention = Retention{Contents: 24 * time.Hour, Chain: 48 * time.Hour} }
	logs := []*Log{f.replica("a", keep), f.replica("b", keep), f.replica("c", keep)}
	at := f.now()
	for n := range 30 {
		f.append(logs[n%3], decisionOf(at, n))
	}
	f.kill(logs[0])
	for _, by := range []time.Duration{24*time.Hour + takeoverDelay + time.Minute, 24 * time.Hour} {
		f.advance(by)
		for n := range 6 {
			f.append(logs[1+n%2], decisionOf(f.now(), 100+n))
		}
		done := make(chan error, 2)
		for _, log := range logs[1:] {
			if err := log.retainer.loadUsage(t.Context()); err != nil {
				t.Fatal(err)
			}
			go func() { done <- log.EnforceRetention(t.Context()) }()
		}
		for range 2 {
			if err := testkit.Receive(t, done); err != nil {
				t.Fatal(err)
			}
		}
		if report := f.verifyAll(); !report.OK() {
			t.Errorf("got %q, want no problems", problems(report))
		}
	}
	if n := f.countMessages("a"); n != 0 {
		t.Errorf("got %d messages in the chain of the ended replica", n)
	}
}

func TestReplicas_SharesCountAllChains(t *testing.T) {
	f := newReplicaFixture(t)
	keep := func(c *Config) { c.Retention = Retention{MaxBytes: 2 << 20, Share: 0.25} }
	a, b := f.replica("a", keep), f.replica("b", keep)
	at := f.now()
	if err := b.retainer.loadUsage(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		rec := outcomeOf(at, n)
		rec.Content = bytes.Repeat([]byte("x"), 20<<10)
		f.append(a, rec)
	}
	other := outcomeOf(at, 50)
	other.Tenant = "globex"
	f.append(a, other)
	f.append(b, outcomeOf(at, 51))
	if err := b.others.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	acme := quota.Owner{Tenant: "acme"}
	if got := b.Usage()[acme]; got < 40*20<<10 {
		t.Errorf("got %d bytes counted by replica b, want those of chain a as well", got)
	}
	f.kill(a)
	if err := b.retainer.makeRoom(t.Context()); err != nil { // its share is 512 KiB
		t.Fatal(err)
	}
	if err := b.others.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.retainer.recountContents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.Usage()[acme]; got > 512<<10 {
		t.Errorf("got %d bytes of the tenant, want at most its share", got)
	}
	if found := f.find(b, other.RequestID); found.Outcome == nil || found.Outcome.Erased {
		t.Errorf("got %+v, want the content of the other tenant", found.Outcome)
	}
	report := f.checkAllVerified("a", "b")
	if got := f.chainReport(report, "a").EvictedContents; got == 0 {
		t.Error("got no content evicted from the chain of the other replica")
	}
}

// A replica counts the bytes written by others, so that together they leave the space that the
// removal of old records needs.
func TestReplicas_CountWritesOfOthers(t *testing.T) {
	f := newReplicaFixture(t)
	small := func(c *Config) { c.Retention = Retention{MaxBytes: 900 << 10, KeepFacts: true} }
	a, b := f.replica("a", small), f.replica("b", small)
	at := f.now()
	fill := func(log *Log, bytes int) {
		t.Helper()
		rec := outcomeOf(at, 1)
		rec.Content = make([]byte, bytes)
		var err error
		for n := 0; err == nil && n < 2_000; n++ {
			err = log.Append(t.Context(), rec)
		}
		if !errors.Is(err, store.ErrFull) {
			t.Fatalf("got error %v, want %v", err, store.ErrFull)
		}
	}
	fill(a, 50<<10)
	fill(a, 0)
	if err := b.others.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Append(t.Context(), outcomeOf(at, 2)); !errors.Is(err, store.ErrFull) {
		t.Errorf("got error %v in a log that another replica has filled, want %v", err, store.ErrFull)
	}
	b.StartRetention()
	testkit.Eventually(t, "the log has space", func() bool {
		return b.Append(t.Context(), outcomeOf(at, 3)) == nil
	})
}
