package orchestrations

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// maxRuns bounds the runs that a process executes at a time. Runs that wait for a person
// do not count.
const maxRuns = 64

// runningRuns are the runs that this process executes. It is safe for concurrent use.
type runningRuns struct {
	newContext func() (context.Context, context.CancelCauseFunc) // of a run

	mu     sync.Mutex
	byID   map[string]context.CancelCauseFunc
	closed bool          // no run is begun any more
	idle   chan struct{} // closed when closed is set and byID is empty
}

// newRunningRuns returns an empty set. The contexts of all runs end with base.
func newRunningRuns(base context.Context) *runningRuns {
	return &runningRuns{
		newContext: func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(base) },
		byID:       map[string]context.CancelCauseFunc{}, idle: make(chan struct{}),
	}
}

var errRunning = errors.New("this process executes the run")

// reserve adds a run that this process is about to execute, and returns its context. A run
// that has begun elsewhere is executed in any case.
func (r *runningRuns) reserve(id string, begun bool) (context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: "the server is stopping"}
	case r.byID[id] != nil:
		return nil, errRunning
	case !begun && len(r.byID) >= maxRuns:
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: fmt.Sprintf("%d orchestrations are running, the maximum", maxRuns)}
	}
	ctx, cancel := r.newContext()
	r.byID[id] = cancel
	return ctx, nil
}

// release removes a run, and ends its context.
func (r *runningRuns) release(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.byID[id]; cancel != nil {
		cancel(nil)
		delete(r.byID, id)
		r.closeIfIdle()
	}
}

// has reports whether this process executes the run.
func (r *runningRuns) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id] != nil
}

// cancel ends the context of a run, and reports whether this process executes it.
func (r *runningRuns) cancel(id string, cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	cancel := r.byID[id]
	if cancel != nil {
		cancel(cause)
	}
	return cancel != nil
}

// close rejects further runs. The channel is closed when none is executed.
func (r *runningRuns) close() (idle <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.closeIfIdle()
	}
	return r.idle
}

// closeIfIdle closes idle if there are no runs and will be none. The caller holds mu.
func (r *runningRuns) closeIfIdle() {
	if r.closed && len(r.byID) == 0 {
		close(r.idle)
	}
}
