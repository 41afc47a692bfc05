package router

import (
	"context"
	"errors"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// waiting are the tasks this process has given out. A result that comes by
// callback wakes who waits for it; of a request somebody waits for it is also the
// only place where the result is known.
type waiting struct {
	mu   sync.Mutex
	byID map[string]*waiter
	// What came for tasks that have ended, so that an agent that sends its result
	// once more, not having heard the answer, is told the same. Two generations
	// bound it.
	young, old map[string]string // task id → hash of the result
}

const maxResults = 4096 // remembered in one generation

// waiter is one task.
type waiter struct {
	taskID, agentID string
	job             *job
	recorded        bool // the task is on record; only who sends it looks

	mu     sync.Mutex
	result *contract.Result // the first that came; set once
	hash   string
	closed bool          // nobody waits any more
	came   chan struct{} // closed when result is set
}

func newWaiting() *waiting {
	return &waiting{byID: map[string]*waiter{}, young: map[string]string{}}
}

// expect must be called before the task goes out; forget ends it.
func (q *waiting) expect(taskID, agentID string, j *job) *waiter {
	w := &waiter{taskID: taskID, agentID: agentID, job: j, came: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byID[taskID] = w
	return w
}

func (q *waiting) forget(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.byID, w.taskID)
	if w.hash == "" {
		return
	}
	if len(q.young) >= maxResults {
		q.young, q.old = map[string]string{}, q.young
	}
	q.young[w.taskID] = w.hash
}

// find returns who waits for the task, and the hash of the result that came for
// it when nobody does any more.
func (q *waiting) find(taskID string) (*waiter, string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	hash := q.young[taskID]
	if hash == "" {
		hash = q.old[taskID]
	}
	return q.byID[taskID], hash
}

// deliver takes a result by callback: the first wins.
func (w *waiter) deliver(res *contract.Result, hash string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.hash == hash:
		return nil
	case w.hash != "":
		return requests.ErrDifferentResult
	case w.closed:
		return requests.ErrEnded
	}
	w.result, w.hash = res, hash
	close(w.came)
	return nil
}

// close ends the waiting with what came otherwise, unless a result by callback
// was first.
func (w *waiter) close(out dispatch.Outcome) dispatch.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	switch {
	case w.result != nil:
		out.Result, out.Err, out.MayHaveExecuted = w.result, nil, false
	case out.Result != nil:
		w.hash = requests.ResultHash(out.Result) // the same by callback is no other
	}
	return out
}

// await waits for the result of a task the agent has accepted (202). A request
// nobody waits for gives its place to others meanwhile.
func (d *delivery) await(ctx context.Context, w *waiter, agent *contract.RegistryEntry) dispatch.Outcome {
	if t := d.job.tracked; t != nil {
		rec, err := t.insist(ctx, func(rec *requests.Record) error { return rec.Wait(w.taskID) })
		if out, ok := doneOnRecord(rec, w.taskID); ok {
			return out // by callback, before anybody waited
		}
		if err != nil && !errors.Is(err, requests.ErrTransition) {
			return dispatch.Outcome{Pending: true}
		}
		d.job.place.give()
		defer d.job.place.take(ctx)
	}
	select {
	case <-w.came:
		w.mu.Lock()
		defer w.mu.Unlock()
		return dispatch.Outcome{Result: w.result}
	case <-ctx.Done():
	}
	return notDelivered(ctx, agent)
}

// notDelivered is the outcome of a task that was accepted and whose result did
// not come in time.
func notDelivered(ctx context.Context, agent *contract.RegistryEntry) dispatch.Outcome {
	uncertain := !agent.Endpoint.Idempotent
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errHandedBack):
		return dispatch.Outcome{Pending: true}
	case errors.Is(ctx.Err(), context.Canceled):
		return dispatch.Outcome{MayHaveExecuted: uncertain, Err: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "the caller left"}}
	case uncertain:
		return dispatch.Outcome{MayHaveExecuted: true, Err: &contract.TaskError{
			Code: contract.TaskOutcomeUnknown, Detail: agent.ID + " accepted the task and sent no result by the deadline: it may have done it",
		}}
	}
	return dispatch.Outcome{Err: &contract.TaskError{
		Code: contract.TaskDeadlineExceeded, Detail: agent.ID + " accepted the task and sent no result by the deadline",
	}}
}

// Result takes the Result an agent sends by callback. The first one wins: the
// same once more is taken as well, another is a conflict. An error is a
// *contract.Error.
func (r *Router) Result(ctx context.Context, grant contract.TaskGrant, res *contract.Result) error {
	if res.TaskID != grant.TaskID {
		e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the result is not valid"}
		e.Add("/task_id", "must be "+grant.TaskID)
		return e
	}
	hash := requests.ResultHash(res)
	w, before := r.waiting.find(grant.TaskID)
	switch {
	case w != nil && w.agentID != grant.AgentID:
		return noSuchTask()
	case w != nil && w.job.tracked == nil:
		return told(w.deliver(res, hash))
	case w == nil && before == hash:
		return nil
	}
	if r.keep.Book != nil {
		err := r.deliverRecorded(ctx, grant, res)
		if w, _ := r.waiting.find(grant.TaskID); err == nil && w != nil { // who came meanwhile, too
			_ = w.deliver(res, hash) // wakes who waits; the record has decided
		}
		if !errors.Is(err, store.ErrNotFound) {
			return told(err)
		}
	}
	if before != "" {
		return told(requests.ErrDifferentResult)
	}
	return told(requests.ErrEnded)
}

// errSame ends a change that has nothing to write.
var errSame = errors.New("the same result again")

func (r *Router) deliverRecorded(ctx context.Context, grant contract.TaskGrant, res *contract.Result) error {
	_, err := r.keep.Book.Update(ctx, grant.RequestID, func(rec *requests.Record) error {
		fresh, err := rec.Deliver(grant.TaskID, grant.AgentID, res)
		if err == nil && !fresh {
			return errSame
		}
		return err
	})
	switch {
	case errors.Is(err, errSame):
		return nil
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrUnavailable):
		return r.storeTrouble(ctx, "the result cannot be stored", err)
	}
	return err
}

// told words for an agent what became of its result.
func told(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, requests.ErrDifferentResult):
		return &contract.Error{Code: contract.CodeConflict, Message: "another result of this task was first"}
	case errors.Is(err, requests.ErrEnded), errors.Is(err, requests.ErrTransition):
		return &contract.Error{Code: contract.CodeConflict, Message: "nobody waits for a result of this task any more"}
	case errors.Is(err, requests.ErrUnknownTask):
		return noSuchTask()
	}
	return err
}

func noSuchTask() error {
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such task"}
}

// Progress tells who listens how far an agent is. Nothing of it is kept.
func (r *Router) Progress(ctx context.Context, grant contract.TaskGrant, p *contract.Progress) error {
	w, _ := r.waiting.find(grant.TaskID)
	if w == nil || w.agentID != grant.AgentID {
		return told(requests.ErrEnded)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.tellEvent(w.job, &contract.Event{
		Type: contract.EventTaskProgress, Progress: p,
		Task: &contract.TaskReport{TaskID: grant.TaskID, AgentID: grant.AgentID, Status: contract.TaskRunning},
	})
	return nil
}
