package execution

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/store"
)

// writeTimeout bounds a write that continues after the context of the request has
// ended.
const writeTimeout = 10 * time.Second

// Detach returns a context for a write that must happen although the context of
// the request has ended.
func Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}

// MaxWritePause is the longest pause between attempts to write a change that the store
// rejects.
const MaxWritePause = 2 * time.Second

// NewWriteBackoff returns the pauses between these attempts.
func NewWriteBackoff() *resilience.Backoff {
	return &resilience.Backoff{Min: 50 * time.Millisecond, Max: MaxWritePause}
}

// OwnedRequest is the stored record of a request that this process executes. Owner and
// epoch are a fencing token: after another process has taken over the request, all
// changes fail with requests.ErrNotOwner.
type OwnedRequest struct {
	Store *requests.Store
	ID    string
	Owner string
	Epoch int
	// Stopping is closed when this process cannot write any more.
	Stopping <-chan struct{}
	// WriteUntil is when changes that must happen are given up, because a caller
	// waits for the response. The zero time is never.
	WriteUntil time.Time
	// Permit is released while the store rejects a change.
	Permit Permit
	Logger *slog.Logger

	// deferred is an outcome that the next change stores, usually the end of the request:
	// one write instead of two. Nil = there is none.
	deferred *deferredOutcome
}

// deferredOutcome is the outcome of a task that the record does not contain yet.
type deferredOutcome struct {
	taskID     string
	outcome    requests.Outcome
	superseded bool // the record contains another result, because a callback was faster
}

// Change makes one change of the record. A deferred outcome is stored in the same write,
// before the change.
func (o *OwnedRequest) Change(ctx context.Context, change func(*requests.Record) error) (*requests.Record, error) {
	rec, err := o.Store.Update(ctx, o.ID, func(rec *requests.Record) error {
		if err := rec.CheckOwner(o.Owner, o.Epoch); err != nil {
			return err
		}
		if t := o.deferred; t != nil {
			err := rec.Finish(t.taskID, t.outcome)
			if t.superseded = errors.Is(err, requests.ErrDifferentResult); err != nil && !t.superseded {
				return err
			}
		}
		return change(rec)
	})
	// Write the field only if it is set: if there are several parts, their goroutines call
	// Change at the same time, and no outcome is deferred.
	if err == nil && o.deferred != nil {
		o.deferred = nil
	}
	return rec, err
}

// IsSuperseded reports, within a change, whether the record contains another result than
// the deferred outcome, because a callback was faster. That result counts, and its agent
// has received the confirmation.
func (o *OwnedRequest) IsSuperseded() bool { return o.deferred != nil && o.deferred.superseded }

// StoreDeferred stores a deferred outcome by itself, because this process does not end the
// request.
func (o *OwnedRequest) StoreDeferred(ctx context.Context) {
	if o.deferred != nil {
		_, _ = o.ChangeUntilStored(ctx, func(*requests.Record) error { return nil }) // an error: it was ended elsewhere
	}
}

// ChangeUntilStored makes a change that records what has already happened. It retries as long
// as the store rejects the change, because the record must not fall behind.
func (o *OwnedRequest) ChangeUntilStored(ctx context.Context, change func(*requests.Record) error) (*requests.Record, error) {
	backoff := NewWriteBackoff()
	for {
		attempt, cancel := o.detach(ctx)
		rec, err := o.Change(attempt, change)
		cancel()
		if err == nil || !store.IsTemporary(err) || !o.Pause(backoff.Next()) {
			return rec, err
		}
	}
}

// detach is Detach within WriteUntil.
func (o *OwnedRequest) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.WriteUntil.IsZero() || time.Until(o.WriteUntil) > writeTimeout {
		return Detach(ctx)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), o.WriteUntil)
}

// Pause waits before another attempt to write, without a permit. It returns false
// if the process stops, or WriteUntil comes first.
func (o *OwnedRequest) Pause(d time.Duration) bool {
	if !o.WriteUntil.IsZero() && time.Until(o.WriteUntil) <= d {
		return false
	}
	o.Permit.Release()
	defer acquireNow(o.Permit)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.Stopping:
		return false
	}
}

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

// StoredResults is the ResultStore of stored requests: results go to the record,
// whichever process executes the request.
type StoredResults struct {
	Store  *requests.Store
	Logger *slog.Logger
}

// errUnchanged ends a change without a write.
var errUnchanged = errors.New("the task already has this result")

// StoreResult implements ResultStore.
func (s *StoredResults) StoreResult(ctx context.Context, grant contract.TaskGrant, result *contract.Result) error {
	_, err := s.Store.Update(ctx, grant.RequestID, func(rec *requests.Record) error {
		fresh, err := rec.Deliver(grant.TaskID, grant.AgentID, result)
		if err == nil && !fresh {
			return errUnchanged
		}
		return err
	})
	switch {
	case errors.Is(err, errUnchanged):
		return nil
	case store.IsTemporary(err):
		return store.CallerError(ctx, s.Logger, "the result cannot be stored", err)
	}
	return err
}
