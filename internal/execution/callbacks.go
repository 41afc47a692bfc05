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

// Refresh reads the record of a request that this process executes, because another
// process may have changed it: results that were stored there complete their tasks. If
// the request has ended there, or another process has taken it over, its execution
// stops; only in the first case do its agents get a cancel.
func (c *Callbacks) Refresh(ctx context.Context, requestID string) { _, _ = c.refresh(ctx, requestID) }

// refresh is Refresh. It returns the record, nil if this process does not execute the
// request any more.
func (c *Callbacks) refresh(ctx context.Context, requestID string) (*requests.Record, error) {
	executing := c.cfg.InFlight.Lookup(requestID)
	if executing == nil {
		return nil, nil //nolint:nilnil // that is no error
	}
	rec, err := c.cfg.Requests.Get(ctx, requestID)
	switch {
	case err != nil: // not stored, or the next poll reads it
		return nil, err
	case rec.Owner == c.cfg.Owner:
		for i := range rec.Tasks {
			if task := &rec.Tasks[i]; task.Result != nil {
				c.complete(task.ID, task.Result)
			}
		}
		return rec, nil
	case rec.State.Terminal():
		executing.Cancel(inflight.ErrCancelled)
	default:
		executing.Cancel(dispatch.ErrHandedOver)
	}
	return nil, nil //nolint:nilnil // as above
}

// complete wakes the execution that waits for the result, if there is one.
func (c *Callbacks) complete(taskID string, result *contract.Result) {
	if task, _ := c.pending.lookup(taskID); task != nil {
		_ = task.complete(result, requests.ResultHash(result)) // the record has decided that it counts
	}
}

// StoreRequest stores the synchronous request of a task that this process executes,
// because its result has arrived at another one.
func (c *Callbacks) StoreRequest(ctx context.Context, taskID string) {
	task, _ := c.pending.lookup(taskID)
	if task == nil {
		return
	}
	if recorder, ok := task.run.Recorder.(*PromotingTaskRecorder); ok {
		_ = recorder.StoreNow(ctx) // the cause is logged
	}
}

// EmitProgress emits the progress of a task to the readers of its events, and reports
// whether this process executes the task.
func (c *Callbacks) EmitProgress(grant contract.TaskGrant, progress *contract.Progress) bool {
	task, _ := c.pending.lookup(grant.TaskID)
	if task == nil || task.agentID != grant.AgentID {
		return false
	}
	report := task.report
	task.run.Emit(&contract.Event{Type: contract.EventTaskProgress, Progress: progress, Task: &report})
	return true
}

// storeElsewhere stores a result of a task that this process does not execute.
func (c *Callbacks) storeElsewhere(ctx context.Context, grant contract.TaskGrant, result *contract.Result) error {
	err := c.cfg.Results.StoreResult(ctx, grant, result)
	if errors.Is(err, store.ErrNotFound) {
		if err = c.cfg.Peers.AwaitRecord(ctx, grant); err == nil {
			err = c.cfg.Results.StoreResult(ctx, grant, result)
		}
	}
	if err == nil {
		c.cfg.Peers.Announce(grant.RequestID)
	}
	return err
}

// readTask returns a stored task of a request that this process executes. It returns nil
// if another process does by now, or the request has ended.
func (c *Callbacks) readTask(ctx context.Context, requestID, taskID string) (*requests.Task, error) {
	rec, err := c.refresh(ctx, requestID)
	switch {
	case errors.Is(err, store.ErrNotFound): // erased
		return nil, nil //nolint:nilnil // that is no error
	case err != nil || rec == nil:
		return nil, err
	}
	return rec.FindTask(taskID), nil
}
