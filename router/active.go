package router

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

// errHandedBack ends work that this process leaves to the next: agents are not
// told to stop.
var errHandedBack = dispatch.ErrHandedOver

// active are the requests this process works on, so that they can be found while
// nothing is on record of how they end.
type active struct {
	mu   sync.Mutex
	byID map[string]*activity
}

// activity is one of them.
type activity struct {
	caller  *contract.Caller
	traceID string
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when it has ended

	mu       sync.Mutex
	decision *contract.Decision // nil before there is one
	answer   *contract.Response // set before done is closed; nil when there is none
}

func newActive() *active { return &active{byID: map[string]*activity{}} }

// enter books the request; leave takes it out again, with its answer.
func (a *active) enter(j *job, cancel context.CancelCauseFunc) *activity {
	act := &activity{caller: j.caller, traceID: j.req.TraceID, cancel: cancel, done: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byID[j.req.RequestID] = act
	return act
}

func (a *active) leave(id string, act *activity, answer *contract.Response) {
	a.mu.Lock()
	if a.byID[id] == act {
		delete(a.byID, id)
	}
	a.mu.Unlock()
	act.mu.Lock()
	act.answer = answer
	act.mu.Unlock()
	close(act.done)
}

func (a *active) find(id string) *activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byID[id]
}

func (a *activity) decided(d *contract.Decision) {
	seen := *d // the original is finished meanwhile
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decision = &seen
}

// state is the request as it is seen from outside.
func (a *activity) state(id string) *contract.Response {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answer != nil {
		return a.answer
	}
	return &contract.Response{
		RequestID: id, TraceID: a.traceID, Status: contract.StatusRunning, Decision: a.decision,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{},
	}
}
