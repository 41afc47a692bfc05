package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Kind is the kind of a record.
type Kind string

// Kinds of records. Admin records are written by the log itself.
const (
	KindDecision Kind = "decision"  // before dispatch
	KindOutcome  Kind = "outcome"   // the response
	KindToolCall Kind = "tool_call" // a call of a tool of an MCP server, after it has ended
	KindRun      Kind = "run"       // an event of an orchestration; Note: the event, the effect and the rule of the policy
	KindFeedback Kind = "feedback"  // a verdict on the decision; Note: the verdict, followed by "none" if no agent is expected; Agents: the expected ones. Its comment is not in the log
	KindAdmin    Kind = "admin"     // an operation on the log, or an act of a caller: see Event
)

// Event is the operation of an admin record.
type Event string

// Events of admin records.
const (
	EventStart      Event = "start"           // a process opened the log
	EventStop       Event = "stop"            // a process closed the log cleanly
	EventErase      Event = "erase"           // the contents of RequestID are erased by Subject; records of earlier versions name it in Note
	EventExpire     Event = "expire"          // contents up to UpTo are removed because of their age
	EventEvict      Event = "evict"           // contents up to UpTo of Tenant, or of Principal, are removed before their retention, to make room
	EventCheckpoint Event = "checkpoint"      // the chain is trimmed up to UpTo
	EventRekey      Event = "rekey"           // the head was signed with an unknown key
	EventClose      Event = "close"           // another replica, named in Note, recorded the ends of requests that this one left, and ended the chain of its process
	EventRegister   Event = "register"        // Agents registered, as the instance in Note
	EventDrain      Event = "drain"           // likewise: it gets no new tasks
	EventLeave      Event = "leave"           // likewise: its registration was removed
	EventDisable    Event = "disable"         // an operator took Agents out of routing
	EventEnable     Event = "enable"          // and back in
	EventAddServer  Event = "register_server" // an operator registered the MCP server in Note
	EventDropServer Event = "remove_server"   // an operator removed the registration of the MCP server in Note
	EventApprove    Event = "approve"         // an operator approved the definition of the tool Action; Note: its hash, or the start of it
	EventTicket     Event = "close_ticket"    // a caller closed the ticket in Note
	EventRotateKeys Event = "rotate_keys"     // the signing keys of the router changed while it ran; Note: the ids that were added, revoked or removed
	EventMismatch   Event = "mismatch"        // at a start the chain did not match its head, or its files were damaged; Note: details
)

// Act is an act of a caller on the registration of an agent or of an MCP server, on the
// definition of a tool or on a ticket, or a change of the router's keys.
type Act struct {
	Event Event
	Agent string
	Tool  string // server and tool, joined by a dot
	Note  string // see Event
}

// ChainPosition is a position in the chain: the last record of a batch.
type ChainPosition struct {
	Batch  uint64 `json:"batch"`
	Record uint64 `json:"record"` // the batch's last
	Hash   string `json:"hash"`   // of that record, in hex
}

// Record is one entry of the log. All fields but Content are facts: they stay as
// long as the chain and contain no text of callers or agents.
type Record struct {
	Kind            Kind            `json:"kind"`
	At              time.Time       `json:"at"`
	RequestID       string          `json:"request_id,omitempty"`
	TraceID         string          `json:"trace_id,omitempty"`
	Tenant          string          `json:"tenant,omitempty"`
	Subject         string          `json:"subject,omitempty"`
	Issuer          string          `json:"issuer,omitempty"`    // issuer of Subject
	Principal       string          `json:"principal,omitempty"` // hash of Issuer and Subject, of an evict record without Tenant
	DecisionID      string          `json:"decision_id,omitempty"`
	RegistryVersion string          `json:"registry_version,omitempty"`
	Status          contract.Status `json:"status,omitempty"`
	Intent          string          `json:"intent,omitempty"`
	Domains         []string        `json:"domains,omitempty"`
	Agents          []string        `json:"agents,omitempty"`
	FallbackUsed    string          `json:"fallback_used,omitempty"`
	Action          string          `json:"action,omitempty"` // of a tool call: server and tool
	// OrchestrationID is the id of an orchestration that is a task of RequestID; "" if
	// RequestID is that of the orchestration, or there is none.
	OrchestrationID string `json:"orchestration_id,omitempty"`
	Note            string `json:"note,omitempty"`

	// Event, Chain and UpTo belong to admin records. Chain is the writer of the chain that an
	// expire, evict or checkpoint record is about; "" = the one that contains it.
	Event Event          `json:"event,omitempty"`
	Chain string         `json:"chain,omitempty"`
	UpTo  *ChainPosition `json:"mark,omitempty"`

	// Content is JSON that can be erased, or nil: of a decision the masked prompt
	// and the decision, of an outcome the masked prompt and the masked response, of a tool
	// call the masked input and the masked result.
	Content []byte `json:"-"`
	// Answer is JSON that is erased together with Content, or nil: what the caller
	// received, if it is not masked. Find and FindWithin return it, Read does not.
	Answer []byte `json:"-"`
	// Erased reports that the Content was erased or has expired. Append ignores it.
	Erased bool `json:"-"`
	// Delayed means that no caller waits for the record, so that Append may wait up to 2 ms for
	// others to write with it.
	Delayed bool `json:"-"`
	// Position is the number of the record in the chain, from 1. It is set when a
	// record is read.
	Position uint64 `json:"-"`
	// Writer is the replica whose chain contains the record. It is set when a record is read.
	Writer string `json:"-"`
}

// isCall reports whether the record is a part of a request, and not its decision or outcome.
func (r *Record) isCall() bool { return r.Kind == KindToolCall || r.Kind == KindRun }

// Limits of one record, in bytes.
const (
	maxFacts = 64 << 10
	// MaxContentSize is the maximum size of Content and of Answer, in bytes.
	MaxContentSize = 16 << 20
)

var errInvalidRecord = errors.New("invalid record")

// newEntry encodes, encrypts and hashes the record in the goroutine of the caller, so that
// the writer has little left to do.
func newEntry(rec *Record, keys *contentkey.Keyring) (batchEntry, error) {
	facts, err := strictjson.Marshal(rec)
	if err != nil {
		return batchEntry{}, fmt.Errorf("%w: %w", errInvalidRecord, err)
	}
	if len(facts) > maxFacts {
		return batchEntry{}, fmt.Errorf("%w: facts of %d bytes, at most %d", errInvalidRecord, len(facts), maxFacts)
	}
	if size := max(len(rec.Content), len(rec.Answer)); size > MaxContentSize {
		return batchEntry{}, fmt.Errorf("%w: content of %d bytes, at most %d", errInvalidRecord, size, MaxContentSize)
	}
	e := batchEntry{facts: facts}
	if rec.Content != nil {
		e.content = newContent(sealContent(rec, keys))
	}
	return e, nil
}

// newContent hashes a content with a random nonce. The nonce is removed together
// with the content, so that the text of an erased content cannot be guessed and
// confirmed.
func newContent(data []byte) entryContent {
	c := entryContent{state: contentInline, data: data}
	rand.Read(c.nonce[:])
	c.hash = c.computeHash(data)
	return c
}

func (c *entryContent) computeHash(data []byte) digest {
	h := sha256.New()
	h.Write(c.nonce[:])
	h.Write(data)
	return digest(h.Sum(nil))
}

// chainOr returns the writer of the chain that an admin record is about.
func (r *Record) chainOr(writer string) string {
	if r.Chain != "" {
		return r.Chain
	}
	return writer
}

// decodeRecord returns record i without its content.
func (b *batch) decodeRecord(i int) (*Record, error) {
	e := &b.entries[i]
	rec := new(Record)
	if err := strictjson.Unmarshal(e.facts, rec); err != nil {
		return nil, fmt.Errorf("record %d: %w: %w", b.first+uint64(i), errInvalidRecord, err)
	}
	rec.Position, rec.Writer = b.first+uint64(i), b.writer
	rec.Erased = e.content.state == contentRemoved
	return rec, nil
}
