package main

import (
	"bytes"
	"net/http"
	"slices"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// ledger is what was promised, seen and done: callers and agents write it, check
// reads it. It knows no clock and no connection. Its methods may be called from
// any goroutine.
type ledger struct {
	mu        sync.Mutex
	promises  map[string]*promise // by request
	order     []string            // requests, in the order of their promises
	keys      map[string][]string // Idempotency-Key → requests it stood for
	work      []execution
	callbacks []callback
	posts     map[int]int // HTTP status → answers to POST; 0 = the connection broke
	odd       []oddity
}

// promise is a request whose caller has seen 202.
type promise struct {
	id       string
	cycle    int    // that made it; 0 when only an agent was told
	promised int    // times
	raw      []byte // the first terminal answer; nil when there is none yet
	answer   *contract.Response
	gone     bool               // the router said once that there is no such request
	changed  *contract.Response // the first answer that differed from that
	finals   int                // final events of one stream of events, the most
	said     contract.Status
	streamed uint64 // sequence of the last event
}

// part is one piece of a request; every intent stands in a request once.
type part struct{ request, intent string }

// execution is one task an agent was given to do.
type execution struct {
	part
	task, agent string
	mark        string // of the result, different for each execution
	repeatable  bool   // the agent is declared idempotent
	failed      bool   // the agent says that it did not succeed
}

// callback is what an agent was told of a result it sent later: the last answer.
type callback struct {
	part
	task, mark string
	status     int
}

// oddity is an answer nobody expects.
type oddity struct{ request, what string }

func newLedger() *ledger {
	return &ledger{promises: map[string]*promise{}, keys: map[string][]string{}, posts: map[int]int{}}
}

// posted books the HTTP status a POST was answered with, 0 for none.
func (l *ledger) posted(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posts[status]++
}

// promised books a request that was accepted.
func (l *ledger) promised(id string, cycle int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promise(id, cycle)
	l.promises[id].promised++
}

func (l *ledger) promise(id string, cycle int) {
	if l.promises[id] == nil {
		l.promises[id] = &promise{id: id, cycle: cycle}
		l.order = append(l.order, id)
	}
}

// stands books a request that a key stands for, as callers and agents see it.
func (l *ledger) stands(key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if key != "" && !slices.Contains(l.keys[key], id) {
		l.keys[key] = append(l.keys[key], id)
	}
}

// saw books the answer to a request, as it is by now.
func (l *ledger) saw(id string, resp *contract.Response, raw []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.promises[id]
	switch {
	case p == nil:
	case p.raw != nil:
		if p.changed == nil && !bytes.Equal(p.raw, raw) {
			p.changed = resp
		}
	case resp.Status.Terminal():
		p.raw, p.answer = raw, resp
	}
}

// gone books that the router knows nothing of a request.
func (l *ledger) gone(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.promises[id]; p != nil {
		p.gone = true
	}
}

// streamed books what one stream of events said: its last sequence, and how many
// finals, with the status of the last.
func (l *ledger) streamed(id string, sequence uint64, finals int, said contract.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.promises[id]
	if p == nil {
		return
	}
	p.streamed, p.finals = sequence, max(p.finals, finals)
	if finals > 0 {
		p.said = said
	}
}

// began books an execution.
func (l *ledger) began(e execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work = append(l.work, e)
}

// told books the answer to a callback. A result that is taken is a promise as
// well, also where the caller never heard that its request was accepted.
func (l *ledger) told(c callback) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callbacks = append(l.callbacks, c)
	if c.status == http.StatusOK {
		l.promise(c.request, 0)
	}
}

// wonder books what nobody expects.
func (l *ledger) wonder(request, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.odd = append(l.odd, oddity{request: request, what: what})
}

// open returns the promises without a terminal answer, oldest first.
func (l *ledger) open() []string {
	return l.pick(func(p *promise) bool { return p.raw == nil })
}

// all returns every promise, oldest first.
func (l *ledger) all() []string {
	return l.pick(func(*promise) bool { return true })
}

// unheard returns the promises no stream of events has told the end of.
func (l *ledger) unheard() []string {
	return l.pick(func(p *promise) bool { return p.finals == 0 })
}

func (l *ledger) pick(keep func(*promise) bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for _, id := range l.order {
		if keep(l.promises[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// lastEvent is the sequence of the last event of a request that was seen.
func (l *ledger) lastEvent(id string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.promises[id]; p != nil {
		return p.streamed
	}
	return 0
}
