package audit

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// verifyAll verifies all chains, with the keys of all replicas but without a data directory.
func (f *replicaFixture) verifyAll(change ...func(*VerifyReplicasConfig)) *LogReport {
	f.t.Helper()
	cfg := VerifyReplicasConfig{Log: f.log, Heads: f.heads, Signer: key("a"), Members: members{"a", "b", "c"}.verify}
	for _, c := range change {
		c(&cfg)
	}
	report, err := VerifyReplicas(f.t.Context(), cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return report
}

// problems returns the problems by writer.
func problems(report *LogReport) map[string][]string {
	found := map[string][]string{}
	for _, c := range report.Chains {
		for _, p := range c.Problems {
			found[c.Writer] = append(found[c.Writer], p.String())
		}
	}
	return found
}

func (f *replicaFixture) checkAllVerified(writers ...string) *LogReport {
	f.t.Helper()
	report := f.verifyAll()
	var got []string
	for _, c := range report.Chains {
		got = append(got, c.Writer)
	}
	if !report.OK() || !slices.Equal(got, writers) {
		f.t.Errorf("got chains %q with problems %q, want chains %q without any", got, problems(report), writers)
	}
	return report
}

func (f *replicaFixture) chainReport(report *LogReport, writer string) *Report {
	f.t.Helper()
	i := slices.IndexFunc(report.Chains, func(c *Report) bool { return c.Writer == writer })
	if i < 0 {
		f.t.Fatalf("got no report of chain %s", writer)
	}
	return report.Chains[i]
}

func TestVerifyReplicas(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a, b := f.replica("a"), f.replica("b")
	for n := range 10 {
		f.append(a, decisionOf(at, n), outcomeOf(at, n))
		f.append(b, decisionOf(at, 10+n), outcomeOf(at, 10+n))
	}
	f.append(a, decisionOf(at, 20))
	f.erase(b, uuid7(at, 3), 2)
	f.erase(b, uuid7(at, 20), 1)
	f.erase(a, uuid7(at, 13), 2)
	f.kill(a)
	f.erase(b, uuid7(at, 4), 2)
	if n, err := b.CloseChain(t.Context(), "a", interrupted); n != 1 || err != nil {
		t.Fatalf("got %d requests closed, error %v, want 1", n, err)
	}
	report := f.checkAllVerified("a", "b")
	if got := f.chainReport(report, "a").ErasedContents; got != 5 {
		t.Errorf("got %d erased contents in chain a, want 5", got)
	}
	a = f.replica("a")
	f.append(a, decisionOf(at, 30))
	f.close(a)
	f.close(b)
	f.checkAllVerified("a", "b")
	report = f.verifyAll(func(c *VerifyReplicasConfig) { c.HeadFile = f.headFile("a") })
	if !report.OK() {
		t.Errorf("with the head in the data directory: got %q", problems(report))
	}
}

// The heads of an ended replica are trusted when its key no longer is.
func TestVerifyReplicas_AfterKeyOfEndedReplica(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	a, b, c := f.replica("a"), f.replica("b"), f.replica("c")
	f.append(a, decisionOf(at, 1))
	f.close(a)
	onlyOf := func(keys ...key) func(*VerifyReplicasConfig) {
		return func(c *VerifyReplicasConfig) { c.Signer, c.Members = keys[0], members(keys).verify }
	}
	if got := f.chainReport(f.verifyAll(onlyOf("b", "c")), "a").Problems; len(got) != 1 || got[0].Kind != ProblemHeadUnknownKey ||
		!strings.HasSuffix(got[0].Detail, "verify the chain with the data directory of its writer") {
		t.Errorf("got %v, want the head signed with an unknown key, and the fix", got)
	}
	if _, err := b.CloseChain(t.Context(), "a", interrupted); err != nil {
		t.Fatal(err)
	}
	f.close(b)
	if _, err := c.CloseChain(t.Context(), "b", interrupted); err != nil {
		t.Fatal(err)
	}
	if report := f.verifyAll(onlyOf("c")); !report.OK() {
		t.Errorf("got %q, want no problems", problems(report))
	}
}

// Verification while the replicas write and erase reports no problem.
func TestVerifyReplicas_WhileInUse(t *testing.T) {
	f := newReplicaFixture(t)
	at := time.Now()
	logs := []*Log{f.replica("a"), f.replica("b")}
	ctx, cancel := context.WithCancel(t.Context())
	group := run.New(ctx)
	for i, log := range logs {
		group.Go("use "+log.writer, func(ctx context.Context) error {
			for n := i; ctx.Err() == nil; n += 2 {
				_ = log.Append(ctx, decisionOf(at, n)) // fails at the end of the test, which verifies the log
				_, _ = logs[1-i].Erase(ctx, uuid7(at, n), &contract.Caller{Tenant: "acme", Subject: "ana"}, 0)
			}
			return nil
		})
	}
	for range 20 {
		if report := f.verifyAll(); !report.OK() {
			t.Errorf("got %q, want no problems", problems(report))
			break
		}
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// forge appends a batch to a chain, as an attacker with write access to the server can.
func (f *replicaFixture) forge(writer string, id chainID, records ...Record) {
	f.t.Helper()
	c := newStoredChain(f.log, testRing, writer)
	end, _, err := c.readTail(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if end.number == 0 {
		end.chain = id
	}
	b := &batch{chain: end.chain, writer: writer, number: end.number + 1, first: end.last + 1, prev: end.hash, entries: make([]batchEntry, len(records))}
	for i := range records {
		if b.entries[i], err = newEntry(&records[i], testRing); err != nil {
			f.t.Fatal(err)
		}
	}
	b.computeHashes()
	f.write("audit."+writer, b.encodeBatch())
}

func (f *replicaFixture) write(subject string, data []byte) {
	f.t.Helper()
	if _, err := f.log.Append(f.t.Context(), subject, data, store.AppendOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// removeContents removes the contents of a request in a chain without announcing it.
func (f *replicaFixture) removeContents(writer, id string) {
	f.t.Helper()
	c := newStoredChain(f.log, testRing, writer)
	var found []*batch
	err := c.walkBatches(f.t.Context(), store.ReadFrom{}, func(*batch) bool { return true }, func(_ uint64, b *batch) error {
		for i := range b.entries {
			if b.isRecordOf(i, id) {
				b.removeContent(i)
				found = append(found, b)
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, b := range found {
		f.write(c.subjects.withoutContents+strconv.FormatUint(b.number, 10), b.encodeBatch())
		if err := f.log.Delete(f.t.Context(), b.seq); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *replicaFixture) purge(subjects ...string) {
	f.t.Helper()
	for _, s := range subjects {
		if err := f.log.Purge(f.t.Context(), s); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *replicaFixture) copyHead(to, from string) {
	f.t.Helper()
	e, err := f.heads.Get(f.t.Context(), from)
	if err == nil {
		_, err = f.heads.Put(f.t.Context(), to, e.Value)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func TestVerifyReplicas_DetectsTampering(t *testing.T) {
	at := time.Now()
	eraseOf := func(n int) Record {
		return Record{Kind: KindAdmin, At: time.Now(), Event: EventErase, RequestID: uuid7(at, n), Note: "mallory"}
	}
	cases := []struct {
		name   string
		tamper func(f *replicaFixture)
		writer string
		want   string // the kind of the problem
	}{
		{"forged chain", func(f *replicaFixture) { f.forge("x", chainID{9}, decisionOf(at, 50)) }, "x", ProblemHeadMissing},
		{"forged chain with a head", func(f *replicaFixture) {
			f.forge("x", chainID{9}, decisionOf(at, 50))
			table := headTable{bucket: f.heads, signer: headSigner{key("x"), members{}.verify}}
			c := newStoredChain(f.log, testRing, "x")
			end, _, err := c.readTail(f.t.Context())
			if err == nil {
				err = table.publish(f.t.Context(), new(end.newHead("x", time.Now())))
			}
			if err != nil {
				f.t.Fatal(err)
			}
		}, "x", ProblemHeadUnknownKey},
		{"swapped head", func(f *replicaFixture) { f.copyHead("a", "b") }, "a", ProblemForged},
		{"head of another chain under a new name", func(f *replicaFixture) { f.copyHead("x", "b") }, "x", ProblemForged},
		{"dropped chain", func(f *replicaFixture) { f.purge("audit.a", "audit.a.>") }, "a", ProblemTruncated},
		{"dropped chain and head", func(f *replicaFixture) {
			f.purge("audit.a", "audit.a.>")
			if err := f.heads.Delete(f.t.Context(), "a"); err != nil {
				f.t.Fatal(err)
			}
		}, "a", ProblemTruncated},
		{"dropped head", func(f *replicaFixture) {
			if err := f.heads.Delete(f.t.Context(), "a"); err != nil {
				f.t.Fatal(err)
			}
		}, "a", ProblemHeadMissing},
		{"content removed", func(f *replicaFixture) { f.removeContents("a", uuid7(at, 1)) }, "a", ProblemDeleted},
		{"content removed, erasure announced behind the head of another chain", func(f *replicaFixture) {
			f.forge("b", chainID{}, eraseOf(1))
			f.removeContents("a", uuid7(at, 1))
		}, "a", ProblemDeleted},
		{"content removed, erasure announced in a chain without a head", func(f *replicaFixture) {
			f.forge("x", chainID{9}, eraseOf(1))
			f.removeContents("a", uuid7(at, 1))
		}, "a", ProblemDeleted},
		{"start removed, checkpoint announced behind the head of another chain", func(f *replicaFixture) {
			c := newStoredChain(f.log, testRing, "a")
			m, err := f.log.Next(f.t.Context(), "audit.a", 1)
			if err != nil {
				f.t.Fatal(err)
			}
			b, _ := tryDecode(m)
			f.forge("b", chainID{}, Record{Kind: KindAdmin, At: time.Now(), Event: EventCheckpoint, Chain: "a", UpTo: b.endPosition()})
			if err := c.stream.Delete(f.t.Context(), m.Seq); err != nil {
				f.t.Fatal(err)
			}
		}, "a", ProblemDeleted},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			f := newReplicaFixture(t)
			a, b := f.replica("a"), f.replica("b")
			for n := range 4 {
				f.append(a, decisionOf(at, n), outcomeOf(at, n))
				f.append(b, decisionOf(at, 10+n))
			}
			// The heads cover all records and contain the other chain.
			err := errors.Join(a.others.catchUp(t.Context()), b.others.catchUp(t.Context()))
			f.kill(a)
			f.kill(b)
			if err := errors.Join(err, a.publishHead(t.Context()), b.publishHead(t.Context())); err != nil {
				t.Fatal(err)
			}
			f.checkAllVerified("a", "b")
			tt.tamper(f)
			got := f.chainReport(f.verifyAll(), tt.writer).Problems
			if !slices.ContainsFunc(got, func(p Problem) bool { return p.Kind == tt.want }) {
				t.Errorf("got %v, want a problem %q", got, tt.want)
			}
		})
	}
}
