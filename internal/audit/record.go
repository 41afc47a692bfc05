package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Kind says what a record records.
type Kind string

// The kinds of a Record. Admin records are the trail's own: nobody appends them.
const (
	KindDecision Kind = "decision" // what will be dispatched
	KindOutcome  Kind = "outcome"  // what became of it
	KindAdmin    Kind = "admin"    // what happened to the trail itself: see Event
)

// Event is what an admin record tells.
type Event string

// The events of admin records.
const (
	EventStart      Event = "start"      // a process opened the trail
	EventStop       Event = "stop"       // and closed it in good order
	EventErase      Event = "erase"      // the contents of RequestID are erased; Note: by whom
	EventExpire     Event = "expire"     // the contents up to Mark are too old and go
	EventCheckpoint Event = "checkpoint" // the chain up to Mark goes
	EventRekey      Event = "rekey"      // the head was signed with a key that is not ours
	EventMismatch   Event = "mismatch"   // at a start the chain was not what its head said, or its files were damaged; Note: how
)

// ChainPosition is a place in the chain, for admin records that speak of one.
type ChainPosition struct {
	Batch  uint64 `json:"batch"`
	Record uint64 `json:"record"` // the batch's last
	Hash   string `json:"hash"`   // of that record, in hex
}

// Record is one entry of the trail. Its members but Content are facts: they
// stay as long as the chain does and hold no text of callers or agents.
type Record struct {
	Kind            Kind            `json:"kind"`
	At              time.Time       `json:"at"`
	RequestID       string          `json:"request_id,omitempty"`
	TraceID         string          `json:"trace_id,omitempty"`
	Tenant          string          `json:"tenant,omitempty"`
	Subject         string          `json:"subject,omitempty"`
	Issuer          string          `json:"issuer,omitempty"` // who vouches for Subject
	DecisionID      string          `json:"decision_id,omitempty"`
	RegistryVersion string          `json:"registry_version,omitempty"`
	Status          contract.Status `json:"status,omitempty"`
	Intent          string          `json:"intent,omitempty"`
	Domains         []string        `json:"domains,omitempty"`
	Agents          []string        `json:"agents,omitempty"`
	FallbackUsed    string          `json:"fallback_used,omitempty"`
	Note            string          `json:"note,omitempty"`

	// Event and Mark are those of admin records.
	Event Event          `json:"event,omitempty"`
	UpTo  *ChainPosition `json:"mark,omitempty"`

	// Content is JSON that may be erased, or nil. Of a decision it is the masked
	// prompt and the decision, of an outcome the prompt and the response.
	Content []byte `json:"-"`
	// Erased says that there was a Content, and that it has gone since: erased on
	// request, or expired. Append does not look at it.
	Erased bool `json:"-"`
	// Position counts the records of a chain from 1. It is set when a record is
	// read.
	Position uint64 `json:"-"`
}

// The bounds of one record, in bytes.
const (
	maxFacts = 64 << 10
	// MaxContentSize is the longest Content, in bytes.
	MaxContentSize = 16 << 20
)

var errRecord = errors.New("not a record")

// entryOf makes the record an entry that can take its place in a chain: all
// that costs time is done here, by the goroutine of who appends.
func entryOf(rec *Record) (entry, error) {
	facts, err := strictjson.Marshal(rec)
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	if len(facts) > maxFacts {
		return entry{}, fmt.Errorf("%w: its facts are %d bytes, at most %d", errRecord, len(facts), maxFacts)
	}
	if len(rec.Content) > MaxContentSize {
		return entry{}, fmt.Errorf("%w: its content is %d bytes, at most %d", errRecord, len(rec.Content), MaxContentSize)
	}
	e := entry{facts: facts}
	if rec.Content != nil {
		e.content = contentOf(rec.Content)
	}
	return e, nil
}

// contentOf hashes a content behind a random nonce, which is kept with it and
// goes with it: without the nonce nobody can try out what an erased content may
// have been.
func contentOf(data []byte) content {
	c := content{state: contentHere, data: data}
	rand.Read(c.nonce[:])
	c.hash = c.sum(data)
	return c
}

func (c *content) sum(data []byte) digest {
	h := sha256.New()
	h.Write(c.nonce[:])
	h.Write(data)
	return digest(h.Sum(nil))
}

// record reads the facts of an entry. The content is there when it lies beside
// them.
func (b *batch) record(i int) (*Record, error) {
	e := &b.entries[i]
	rec := new(Record)
	if err := strictjson.Unmarshal(e.facts, rec); err != nil {
		return nil, fmt.Errorf("record %d: %w: %w", b.first+uint64(i), errRecord, err)
	}
	rec.Position = b.first + uint64(i)
	switch e.content.state {
	case contentHere:
		rec.Content = e.content.data
	case contentGone:
		rec.Erased = true
	}
	return rec, nil
}
