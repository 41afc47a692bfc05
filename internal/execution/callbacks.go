package execution

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// ResultStore stores results that agents post to their callback URL.
type ResultStore interface {
	// StoreResult stores the result of a task. The first result wins, and storing
	// the same one again succeeds. Errors are those of internal/requests,
	// store.ErrNotFound if the request is unknown, or a *contract.Error.
	StoreResult(ctx context.Context, grant contract.TaskGrant, result *contract.Result) error
}

// Callbacks accepts the pending results and the progress that agents post while
// they work on a task. It is safe for concurrent use.
type Callbacks struct {
	pending *pendingTasks
	offers  *pulltarget.Offers
	cfg     CallbackConfig
}

// CallbackConfig is what Callbacks work with.
type CallbackConfig struct {
	Results  ResultStore // of tasks whose request this process does not keep in memory
	Requests *requests.Store
	InFlight *inflight.Table
	Owner    string // names this process in stored requests
	Peers    Peers
	// Poll is the first pause after which a task that waits for its result reads its
	// record, which another process may have changed; 0 = never.
	Poll   time.Duration
	Logger *slog.Logger // nil = silent
}

// NewCallbacks returns Callbacks. Poll and Logger may be zero, all else is required.
func NewCallbacks(cfg CallbackConfig) *Callbacks {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Callbacks{pending: newPendingTasks(), offers: pulltarget.NewOffers(), cfg: cfg}
}

// Offers returns the tasks that agents may pull.
func (c *Callbacks) Offers() *pulltarget.Offers { return c.offers }

// AcceptResult stores the result that an agent posts to its callback URL and wakes
// the execution that waits for it. The first result wins. Posting the same result
// again succeeds, so that agents can retry; a different one is a conflict.
//
// Errors are *contract.Error: invalid_request if the task ids differ, not_found if
// the task is unknown or belongs to another agent, conflict if the task has ended
// or has another result, overloaded if the store rejects the write.
func (c *Callbacks) AcceptResult(ctx context.Context, grant contract.TaskGrant, result *contract.Result) error {
	if result.TaskID != grant.TaskID {
		e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the result is not valid"}
		e.Add("/task_id", "must be "+grant.TaskID)
		return e
	}
	hash := requests.ResultHash(result)
	task, endedWith := c.pending.lookup(grant.TaskID)
	var err error
	switch {
	case task != nil && task.agentID != grant.AgentID:
		return unknownTask()
	case task != nil:
		err = task.run.Results.StoreResult(ctx, grant, result)
	case endedWith == hash:
		return nil
	case endedWith != "":
		err = c.cfg.Results.StoreResult(ctx, grant, result)
	default:
		err = c.storeElsewhere(ctx, grant, result)
	}
	switch {
	case errors.Is(err, store.ErrNotFound) && endedWith != "":
		err = requests.ErrDifferentResult
	case errors.Is(err, store.ErrNotFound):
		err = requests.ErrEnded
	case err == nil:
		// The store has decided that this result counts. Look again, because an
		// execution may have begun to wait in the meantime.
		c.complete(grant.TaskID, result)
	}
	return callbackError(err)
}

// callbackError maps an error of a ResultStore to the error that the agent receives.
func callbackError(err error) error {
	switch {
	case errors.Is(err, requests.ErrDifferentResult):
		return &contract.Error{Code: contract.CodeConflict, Message: "the task already has a different result"}
	case errors.Is(err, requests.ErrEnded), errors.Is(err, requests.ErrTransition):
		return &contract.Error{Code: contract.CodeConflict, Message: "the task has ended"}
	case errors.Is(err, requests.ErrUnknownTask):
		return unknownTask()
	}
	return err
}

func unknownTask() error {
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such task"}
}

// AcceptProgress emits the progress of a task to the readers of its events. It is
// not stored, and lost if a message to the process that executes the task is.
func (c *Callbacks) AcceptProgress(ctx context.Context, grant contract.TaskGrant, progress *contract.Progress) error {
	if c.EmitProgress(grant, progress) {
		return ctx.Err()
	}
	if task, _ := c.pending.lookup(grant.TaskID); task != nil { // of another agent
		return callbackError(requests.ErrEnded)
	}
	return callbackError(c.cfg.Peers.ForwardProgress(ctx, grant, progress))
}

// awaitCallback waits for the result of a task that the agent has accepted with
// 202. The permit is released meanwhile, because waiting costs little.
func (p *partExecution) awaitCallback(ctx context.Context, task *pendingTask, agent *contract.RegistryEntry) dispatch.Outcome {
	if out, ok := p.run.Recorder.AwaitingCallback(ctx, task.id); ok {
		if out.Err != nil { // no result is awaited
			p.cancelTask(task.id, agent)
		}
		return out
	}
	p.run.Permit.Release()
	defer p.run.Permit.Acquire(ctx)
	if p.executor.callbacks.await(ctx, task) {
		return dispatch.Outcome{Result: task.completedWith()}
	}
	return missingResult(ctx, agent)
}

// cancelTask asks the agent to abandon a task that it has accepted.
func (p *partExecution) cancelTask(taskID string, agent *contract.RegistryEntry) {
	p.executor.dispatcher.CancelTask(dispatch.Call{Agent: agent, Caller: p.run.Request.Caller, Task: contract.Task{
		TaskID: taskID, RequestID: p.run.Request.RequestID, TraceID: p.run.Request.TraceID,
	}})
}

// logFailure logs the outcome of a task whose result was to arrive later, unless there is a result.
// The targets log the tasks that fail on the connection.
func (p *partExecution) logFailure(ctx context.Context, taskID, agentID string, out *dispatch.Outcome) {
	if out.Err == nil {
		return
	}
	level := slog.LevelWarn
	if out.Err.Code == contract.TaskWasCancelled {
		level = slog.LevelDebug
	}
	p.executor.callbacks.cfg.Logger.Log(ctx, level, "task not done", "agent", agentID, "task_id", taskID,
		"trace_id", p.run.Request.TraceID, "attempts", out.Attempts, "code", out.Err.Code, "detail", out.Err.Detail)
}

// missingResult is the outcome of a task that was accepted, and whose result did
// not arrive in time.
func missingResult(ctx context.Context, agent *contract.RegistryEntry) dispatch.Outcome {
	uncertain := !agent.Endpoint.Idempotent
	switch {
	case errors.Is(context.Cause(ctx), dispatch.ErrHandedOver):
		return dispatch.Outcome{Pending: true}
	case errors.Is(ctx.Err(), context.Canceled):
		return dispatch.Outcome{MayHaveExecuted: uncertain, Err: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "the caller disconnected"}}
	case uncertain:
		return dispatch.Outcome{MayHaveExecuted: true, Err: &contract.TaskError{
			Code: contract.TaskOutcomeUnknown, Detail: agent.ID + " accepted the task and sent no result by the deadline: it may have done it",
		}}
	}
	return dispatch.Outcome{Err: &contract.TaskError{
		Code: contract.TaskDeadlineExceeded, Detail: agent.ID + " accepted the task and sent no result by the deadline",
	}}
}
