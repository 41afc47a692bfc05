// Package inflight is the table of the requests that this process executes. While
// a request is in the table it can be looked up and cancelled, although its
// response is not stored yet.
//
//	request := inflight.NewRequest(id, traceID, caller, cancel)
//	table.Add(request)
//	defer func() { table.Remove(request, response) }()
package inflight

import (
	"context"
	"errors"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// ErrCancelled is the cause with which the context of a cancelled request ends.
var ErrCancelled = errors.New("the request was cancelled")

// Table contains the requests in flight by id. It is safe for concurrent use.
type Table struct {
	mu   sync.Mutex
	byID map[string]*Request
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{byID: map[string]*Request{}} }

// Add makes the request visible.
func (t *Table) Add(r *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[r.id] = r
}

// Remove ends the request with its response, which is nil if there is none.
func (t *Table) Remove(r *Request, response *contract.Response) {
	t.mu.Lock()
	if t.byID[r.id] == r {
		delete(t.byID, r.id)
	}
	t.mu.Unlock()
	r.mu.Lock()
	r.response = response
	r.mu.Unlock()
	close(r.done)
}

// Lookup returns the request, or nil if this process does not execute it.
func (t *Table) Lookup(id string) *Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// OfCallers returns the requests of the callers for which match returns true.
func (t *Table) OfCallers(match func(*contract.Caller) bool) (found []*Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byID {
		if match(r.caller) {
			found = append(found, r)
		}
	}
	return found
}

// Request is one request in flight. It is safe for concurrent use.
type Request struct {
	id, traceID string
	caller      *contract.Caller
	cancel      context.CancelCauseFunc
	done        chan struct{}

	mu       sync.Mutex
	decision *contract.Decision // nil until there is one
	response *contract.Response // set before done is closed
}

// NewRequest returns a request that is not in a table yet.
func NewRequest(id, traceID string, caller *contract.Caller, cancel context.CancelCauseFunc) *Request {
	return &Request{id: id, traceID: traceID, caller: caller, cancel: cancel, done: make(chan struct{})}
}

// ID returns the id of the request.
func (r *Request) ID() string { return r.id }

// Caller returns the principal that sent the request.
func (r *Request) Caller() *contract.Caller { return r.caller }

// Cancel ends the context of the request.
func (r *Request) Cancel(cause error) { r.cancel(cause) }

// Done is closed after the request was removed from its table.
func (r *Request) Done() <-chan struct{} { return r.done }

// SetDecision shows a copy of the decision in State, because the pipeline continues
// to write to the original.
func (r *Request) SetDecision(d *contract.Decision) {
	shown := *d
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decision = &shown
}

// State returns the response or, as long as there is none, the request as running.
func (r *Request) State() *contract.Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.response != nil {
		return r.response
	}
	return &contract.Response{
		RequestID: r.id, TraceID: r.traceID, Status: contract.StatusRunning, Decision: r.decision,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{},
	}
}
