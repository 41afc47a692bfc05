package execution

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// Peers are the other processes that share the store. Messages to them may be lost:
// they only make faster what a process finds in the store anyway.
type Peers interface {
	// Announce lets the process that executes the request read its record again.
	Announce(requestID string)

	// AwaitRecord asks the process that executes the request of a task in memory to
	// store it, and returns nil when it is stored. Errors are requests.ErrEnded if no
	// process executes it, store.ErrNotFound if it is unknown, and a *contract.Error if
	// it is not stored in time.
	AwaitRecord(ctx context.Context, grant contract.TaskGrant) error

	// ForwardProgress sends the progress of a task to the process that executes it. It
	// returns requests.ErrEnded if no process does.
	ForwardProgress(ctx context.Context, grant contract.TaskGrant, progress *contract.Progress) error

	// Offer announces a task that its agent may pull from any process.
	Offer(task pulltarget.Offer)
}

// NoPeers are the Peers of a process whose store no other process uses.
type NoPeers struct{}

// Announce does nothing.
func (NoPeers) Announce(string) {}

// AwaitRecord returns store.ErrNotFound.
func (NoPeers) AwaitRecord(context.Context, contract.TaskGrant) error { return store.ErrNotFound }

// ForwardProgress returns requests.ErrEnded.
func (NoPeers) ForwardProgress(context.Context, contract.TaskGrant, *contract.Progress) error {
	return requests.ErrEnded
}

// Offer does nothing.
func (NoPeers) Offer(pulltarget.Offer) {}

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

// await waits for the result of a task and meanwhile reads the record now and then, in
// case a message of another process was lost. It reports whether there is a result.
func (c *Callbacks) await(ctx context.Context, task *pendingTask) bool {
	var poll <-chan time.Time
	for wait := c.cfg.Poll; ; wait = min(wait*3/2, maxPoll) {
		if wait > 0 {
			poll = time.After(wait)
		}
		select {
		case <-task.done:
			return true
		case <-ctx.Done():
			return false
		case <-poll:
			c.Refresh(ctx, task.run.Request.RequestID)
		}
	}
}

// maxPoll bounds the growing pause between two reads of a record, because many requests
// may wait for a long time.
const maxPoll = 30 * time.Second
