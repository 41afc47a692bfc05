package execution

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// maxSends bounds how often one part of an asynchronous request is sent if no
// agent executes it.
const maxSends = 20

// Asynchronous returns the Persistence of an asynchronous request, whose tasks are
// written to its record. If draining returns true, no further task is sent.
func (e *Executor) Asynchronous(owned *OwnedRequest, draining func() bool) Persistence {
	return Persistence{
		Recorder: &DurableRecorder{owned: owned, draining: draining, mayDefer: true},
		Results:  e.callbacks.cfg.Results, Permit: owned.Permit, MaxSends: maxSends,
	}
}

// DurableRecorder is the TaskRecorder of stored requests: it writes each step to the record
// before it takes effect.
type DurableRecorder struct {
	owned    *OwnedRequest
	draining func() bool
	// mayDefer allows the result of the only part to be stored with the end of the request,
	// which follows at once.
	mayDefer bool
	// onlyTask is the latest task of a request with one part, as long as its result can
	// only be the answer of the agent. The goroutine of the part owns it.
	onlyTask string
}

// Sent implements TaskRecorder. The first task starts the request.
func (d *DurableRecorder) Sent(ctx context.Context, task requests.Task, _ bool) error {
	parts := 0
	err := d.beforeSend(ctx, func(rec *requests.Record) error {
		parts = len(rec.Parts)
		if rec.State == requests.StatePlanned {
			if err := rec.Start(d.owned.Owner, d.owned.Epoch); err != nil {
				return err
			}
		}
		return rec.Send(task)
	})
	if err == nil && parts == 1 && task.Pull == nil {
		d.onlyTask = task.ID
	}
	return err
}

// Resent implements TaskRecorder.
func (d *DurableRecorder) Resent(ctx context.Context, taskID string, attempt int) error {
	return d.beforeSend(ctx, func(rec *requests.Record) error { return rec.Resend(taskID, attempt) })
}

func (d *DurableRecorder) beforeSend(ctx context.Context, change func(*requests.Record) error) error {
	if d.draining() {
		return dispatch.ErrHandedOver
	}
	_, err := d.owned.Change(ctx, change)
	return err
}

// AwaitingCallback implements TaskRecorder. The result may have arrived before. It is awaited
// even if the record cannot be changed: the agent has the task.
func (d *DurableRecorder) AwaitingCallback(ctx context.Context, taskID string) (dispatch.Outcome, bool) {
	if d.onlyTask == taskID {
		d.onlyTask = ""
	}
	rec, err := d.owned.ChangeUntilStored(ctx, func(rec *requests.Record) error { return rec.Wait(taskID) })
	if out, ok := finishedTask(rec, taskID); ok {
		return out, true
	}
	switch {
	case err == nil, errors.Is(err, requests.ErrTransition):
	case errors.Is(err, requests.ErrNotOwner), errors.Is(err, requests.ErrEnded):
		return dispatch.Outcome{Pending: true}, true // the outcome does not count
	default:
		d.owned.Logger.ErrorContext(ctx, "cannot record that a task waits for its result", "request_id", d.owned.ID, "task_id", taskID, "error", err)
	}
	return dispatch.Outcome{}, false
}

// Finished implements TaskRecorder.
func (d *DurableRecorder) Finished(ctx context.Context, taskID string, out dispatch.Outcome) dispatch.Outcome {
	if d.endsRequest(taskID, &out) {
		d.owned.deferred = &deferredOutcome{taskID: taskID, outcome: newStoredOutcome(out)}
		return out
	}
	rec, err := d.owned.ChangeUntilStored(ctx, func(rec *requests.Record) error {
		return rec.Finish(taskID, newStoredOutcome(out))
	})
	if errors.Is(err, requests.ErrDifferentResult) { // a callback arrived first
		ctx, cancel := d.owned.detach(ctx)
		defer cancel()
		rec, err = d.owned.Store.Get(ctx, d.owned.ID)
	}
	if err != nil {
		return out // the request was ended elsewhere, for example cancelled
	}
	if stored, ok := finishedTask(rec, taskID); ok {
		stored.Health = out.Health
		return stored
	}
	return out
}

// endsRequest reports whether the request ends with this outcome: it is the answer to the
// only task, and no other agent gets the part.
func (d *DurableRecorder) endsRequest(taskID string, out *dispatch.Outcome) bool {
	return d.mayDefer && d.onlyTask == taskID && out.Result != nil && out.Err == nil && out.Result.Status != contract.ResultFailure
}

// finishedTask returns the outcome of a task if the record contains it.
func finishedTask(rec *requests.Record, taskID string) (dispatch.Outcome, bool) {
	if rec == nil || rec.State.Terminal() { // an ended request contains no results
		return dispatch.Outcome{}, false
	}
	for i := range rec.Tasks {
		if task := &rec.Tasks[i]; task.ID == taskID && task.State == requests.TaskDone {
			return storedOutcome(task), true
		}
	}
	return dispatch.Outcome{}, false
}

func newStoredOutcome(out dispatch.Outcome) requests.Outcome {
	return requests.Outcome{
		Result: out.Result, Err: out.Err, Uncertain: out.MayHaveExecuted, Attempts: out.Attempts, LatencyMS: contract.ToMilliseconds(out.Latency),
	}
}

func storedOutcome(task *requests.Task) dispatch.Outcome {
	return dispatch.Outcome{
		Result: task.Result, Err: task.Err, MayHaveExecuted: task.Uncertain, Attempts: task.Attempts,
		Latency: time.Duration(task.LatencyMS * float64(time.Millisecond)),
	}
}
