package workload

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Ledger records which requests were accepted, what callers saw of them, and what
// agents did. Callers and agents write it, and the checks read it. It is safe for
// concurrent use.
type Ledger struct {
	mu         sync.Mutex
	requests   map[string]*acceptedRequest // by id
	accepted   []string                    // ids in the order of acceptance
	keys       map[string][]string         // ids of requests by Idempotency-Key
	executions []execution
	callbacks  []callback
	turns      int      // of sessions that follow another turn
	noHistory  []string // requests of turns without the turn before
	unexpected []string
	Trims      bool // the store is too small for all answers
}

// acceptedRequest is a request that was answered with 202, or whose result was
// accepted.
type acceptedRequest struct {
	id          string
	raw         []byte // the first terminal response, nil before
	answer      *contract.Response
	notFound    bool   // the router answered 404 once
	changed     []byte // the first response that differed from raw
	early       bool   // the caller may have got it before it was recorded (audit.outcome: background)
	unrecorded  bool   // the router was killed in between
	finalEvents int    // maximum number of final events in one stream
	finalStatus contract.Status
	cancelledTo contract.Status // the status in the answer to a cancel
	lastEvent   uint64
}

// subtask is one part of a request, identified by its intent.
type subtask struct{ request, intent string }

// execution is one task that an agent received.
type execution struct {
	subtask
	task, agent string
	mark        string // identifies the result
	idempotent  bool
	sync        bool // of a synchronous request
	failed      bool // the agent returned a failure
	at          time.Time
}

// callback is the final answer to a result that an agent sent by callback.
type callback struct {
	subtask
	task, mark string
	status     int
	at         time.Time
}

// NewLedger returns an empty Ledger.
func NewLedger() *Ledger {
	return &Ledger{requests: map[string]*acceptedRequest{}, keys: map[string][]string{}}
}

func (l *Ledger) recordAccepted(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addRequest(id)
}

func (l *Ledger) addRequest(id string) {
	if l.requests[id] == nil {
		l.requests[id] = &acceptedRequest{id: id}
		l.accepted = append(l.accepted, id)
	}
}

// recordKey records that callers or agents saw the request with the idempotency key.
func (l *Ledger) recordKey(key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != "" && !slices.Contains(l.keys[key], id) {
		l.keys[key] = append(l.keys[key], id)
	}
}

// recordResponse records the current state of a request.
func (l *Ledger) recordResponse(id string, resp *contract.Response, raw []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.requests[id]
	switch {
	case p == nil:
	case p.raw != nil && p.early && isInterrupted(resp):
		p.unrecorded = true
	case p.raw != nil:
		evicted := l.Trims && resp.Decision == nil && resp.Status == p.answer.Status // a small store keeps the facts only
		if p.changed == nil && !evicted && !bytes.Equal(p.raw, raw) {
			p.changed = raw
		}
	case resp.Status.Terminal():
		p.raw, p.answer = raw, resp
	}
}

// recordAnsweredFirst records that the router need not have recorded the response before
// its caller got it.
func (l *Ledger) recordAnsweredFirst(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.requests[id]; p != nil {
		p.early = true
	}
}

// isInterrupted reports whether this is the response to a synchronous request whose router
// ended before it recorded another one. Its tasks have no ids of their own.
func isInterrupted(resp *contract.Response) bool {
	return resp.Status == contract.StatusFailed && len(resp.Tasks) > 0 && !slices.ContainsFunc(resp.Tasks, func(t contract.TaskReport) bool {
		return t.TaskID != resp.RequestID || t.Error == nil || t.Error.Code != contract.TaskOutcomeUnknown
	})
}

// recordNotFound records that the router answered 404 or 410. If the store is small,
// it may delete an answer after the request has ended.
func (l *Ledger) recordNotFound(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.requests[id]; p != nil && (!l.Trims || p.answer == nil) {
		p.notFound = true
	}
}

// recordExpired records that a key was answered 410: its request has ended, and the
// answer was deleted.
func (l *Ledger) recordExpired(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.Trims {
		l.unexpected = append(l.unexpected, key+": the answer has expired")
	}
}

// recordCancelled records the status in the answer to a cancel.
func (l *Ledger) recordCancelled(id string, status contract.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.requests[id]; p != nil {
		p.cancelledTo = status
	}
}

// recordStream records one stream of events: its last sequence number, the number of
// final events, and the status in the last of these.
func (l *Ledger) recordStream(id string, sequence uint64, finals int, status contract.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.requests[id]
	if p == nil {
		return
	}
	p.lastEvent, p.finalEvents = sequence, max(p.finalEvents, finals)
	if finals > 0 {
		p.finalStatus = status
	}
}

func (l *Ledger) recordExecution(e execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executions = append(l.executions, e)
}

// recordCallback records the answer to a callback. A request with an accepted result
// must not be lost either, even if no caller received its 202.
func (l *Ledger) recordCallback(c callback) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callbacks = append(l.callbacks, c)
	if c.status == http.StatusOK {
		l.addRequest(c.request)
	}
}

// AcceptExecuted adds the asynchronous requests that reached an agent, because they
// must not be lost either, even if no caller received their 202.
func (l *Ledger) AcceptExecuted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.executions {
		if !e.sync {
			l.addRequest(e.request)
		}
	}
}

// recordTurn records a turn of a session, and whether the agent received the turn before.
func (l *Ledger) recordTurn(id string, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns++
	if !complete {
		l.noHistory = append(l.noHistory, id)
	}
}

// RecordUnexpected records an answer that the protocol does not allow.
func (l *Ledger) RecordUnexpected(request, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unexpected = append(l.unexpected, request+": "+what)
}

// OpenRequests returns the requests without a terminal response, oldest first. A request
// that was not found is lost, and not awaited.
func (l *Ledger) OpenRequests() []string {
	return l.selectRequests(func(p *acceptedRequest) bool { return p.raw == nil && !p.notFound })
}

// AllRequests returns every request, oldest first.
func (l *Ledger) AllRequests() []string {
	return l.selectRequests(func(*acceptedRequest) bool { return true })
}

// WithoutFinalEvent returns the requests whose final event was in no stream.
func (l *Ledger) WithoutFinalEvent() []string {
	return l.selectRequests(func(p *acceptedRequest) bool { return p.finalEvents == 0 })
}

// FirstAfter returns the times of the first execution and of the first accepted
// callback after t, zero if there was none.
func (l *Ledger) FirstAfter(t time.Time) (dispatched, delivered time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.executions {
		if dispatched.IsZero() && e.at.After(t) {
			dispatched = e.at
		}
	}
	for _, c := range l.callbacks {
		if delivered.IsZero() && c.at.After(t) && c.status == http.StatusOK {
			delivered = c.at
		}
	}
	return dispatched, delivered
}

func (l *Ledger) selectRequests(keep func(*acceptedRequest) bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for _, id := range l.accepted {
		if keep(l.requests[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// lastEventID returns the sequence number of the last event that was seen.
func (l *Ledger) lastEventID(id string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.requests[id]; p != nil {
		return p.lastEvent
	}
	return 0
}
