package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writeIn); dir != "" {
		if err := appendUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// key is a fast Signer with the same behaviour for the log.
type key string

func (k key) KeyID() string { return "id-of-" + string(k) }

func (k key) Sign(purpose string, data []byte) (keyID string, sig []byte) {
	h := hmac.New(sha256.New, []byte(k))
	fmt.Fprintf(h, "%s\x00%s", purpose, data)
	return k.KeyID(), h.Sum(nil)
}

func (k key) Verify(purpose, keyID string, data, sig []byte) bool {
	_, want := k.Sign(purpose, data)
	return keyID == k.KeyID() && hmac.Equal(sig, want)
}

const testKey = key("one")

// testRing encrypts the contents of chains in memory.
var testRing = teststore.Keys()

// epoch is the time at which the chains in memory begin.
func epoch() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// uuid7 returns the id of a request at this time; n makes it unique.
func uuid7(at time.Time, n int) string {
	ms := uint64(at.UnixMilli())
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, n)
}

// decisionOf and outcomeOf return the two records of request n.
func decisionOf(at time.Time, n int) Record {
	return Record{
		Kind: KindDecision, At: at, RequestID: uuid7(at, n), TraceID: fmt.Sprintf("%032x", n), Tenant: "acme", Subject: "ana",
		DecisionID: fmt.Sprintf("decision-%d", n), RegistryVersion: "sha256:1", Intent: "code_review",
		Domains: []string{"python"}, Agents: []string{"quality_agent"},
		Content: fmt.Appendf(nil, `{"prompt":"review number %d","decision":{}}`, n),
	}
}

func outcomeOf(at time.Time, n int) Record {
	rec := decisionOf(at, n)
	rec.Kind, rec.Status = KindOutcome, contract.StatusCompleted
	rec.Content = fmt.Appendf(nil, `{"prompt":"review number %d","response":{"status":"completed"}}`, n)
	return rec
}

// toolCallOf returns a call of a tool for the request of decisionOf.
func toolCallOf(at time.Time, n int, content string) Record {
	rec := outcomeOf(at, n)
	rec.Kind, rec.Action, rec.Content = KindToolCall, "weather.query", []byte(content)
	return rec
}

// chain is a chain in memory: its messages as a log stores them, and the state
// needed to extend it.
type chain struct {
	t        testing.TB
	id       chainID
	end      chainEnd
	messages []store.Message
	requests int
}

func newChain(t testing.TB, id byte) *chain {
	return &chain{t: t, id: chainID{id}}
}

// add appends one batch of these records.
func (c *chain) add(records ...Record) *batch {
	c.t.Helper()
	b := &batch{
		chain: c.id, writer: DefaultWriter, number: c.end.number + 1, first: c.end.last + 1, prev: c.end.hash,
		entries: make([]batchEntry, len(records)),
	}
	for i := range records {
		e, err := newEntry(&records[i], testRing)
		if err != nil {
			c.t.Fatal(err)
		}
		b.entries[i] = e
	}
	b.computeHashes()
	c.end = chainEnd{chain: c.id, number: b.number, last: b.lastPosition(), hash: b.lastHash()}
	c.append(newChainSubjects(DefaultWriter).chain, b)
	return b
}

func (c *chain) append(subject string, b *batch) {
	seq := uint64(1)
	if n := len(c.messages); n > 0 {
		seq = c.messages[n-1].Seq + 1
	}
	c.end.seq = seq
	c.messages = append(c.messages, store.Message{Seq: seq, At: epoch(), Subject: subject, Data: b.encodeBatch()})
}

// grow appends batches with random numbers of requests.
func (c *chain) grow(rng *rand.Rand, batches int) {
	c.t.Helper()
	for range batches {
		var records []Record
		for range 1 + rng.IntN(4) {
			c.requests++
			at := epoch().Add(time.Duration(c.requests) * time.Second)
			records = append(records, decisionOf(at, c.requests), outcomeOf(at, c.requests))
		}
		c.add(records...)
	}
}

// admin appends a batch with one record of the log itself.
func (c *chain) admin(event Event, request string, mark *ChainPosition) {
	c.t.Helper()
	at := epoch().Add(time.Duration(c.requests) * time.Second)
	c.add(Record{Kind: KindAdmin, Event: event, At: at, RequestID: request, UpTo: mark})
}

func (c *chain) head() *chainHead {
	h := c.end.newHead(DefaultWriter, epoch())
	return &h
}

// read decodes the message at index i.
func (c *chain) read(i int) *batch {
	c.t.Helper()
	b, err := decodeMessage(c.messages[i])
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// verify verifies messages without a log.
func verify(messages []store.Message, h *chainHead, how headStatus) *Report {
	parts := map[uint64][]byte{}
	for _, m := range messages {
		parts[m.Seq] = m.Data
	}
	x := newChainReader(DefaultWriter, func(seq uint64) ([]byte, error) {
		if data, ok := parts[seq]; ok {
			return data, nil
		}
		return nil, store.ErrNotFound
	})
	for _, m := range messages {
		x.addMessage(m)
	}
	return x.buildReport(h, how)
}
