package router

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
)

// Submit accepts a request to be worked on after the answer, which says so: it is
// on disk when Submit returns, and goes on after a crash of this process.
func (r *Router) Submit(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	resp, err := r.acceptForLater(ctx, req, caller)
	return r.visibilityFilter(caller).Response(resp), err
}

func (r *Router) acceptForLater(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	j, err := r.accept(ctx, req, caller)
	if err != nil {
		return nil, err
	}
	if stored, err := r.reserveKey(ctx, j); stored != nil || err != nil {
		return stored, err
	}
	resp, err := r.submit(ctx, j)
	if err != nil && !errors.Is(err, errPerhaps) {
		r.keys.Release(ctx, j.reservation)
	}
	return resp, err
}

// errPerhaps is a request that may be on record although the store did not say so:
// its key stays with it.
var errPerhaps = errors.New("nobody knows whether the request is on record")

func (r *Router) submit(ctx context.Context, j *job) (*contract.Response, error) {
	if !r.open.enter() {
		return nil, &contract.Error{
			Code: contract.CodeOverloaded, Message: fmt.Sprintf("%d requests are open already; wait until some have ended", maxOpen),
		}
	}
	rec := r.newRecord(j)
	err := r.hasRoom(ctx)
	if err == nil {
		err = r.create(ctx, rec)
	}
	if err != nil {
		r.open.leave()
		return nil, err
	}
	resp := rec.Snapshot()
	r.follow(j, rec)
	return resp, nil
}

// hasRoom refuses a request when the store has only the room left that those need
// that were accepted before.
func (r *Router) hasRoom(ctx context.Context) error {
	now := time.Now()
	if now.UnixMilli() < r.open.room.Load() {
		return nil
	}
	switch ok, err := r.keep.Book.HasCapacity(ctx); {
	case err != nil:
		return r.storeTrouble(ctx, "the request cannot be stored", err)
	case !ok:
		return &contract.Error{Code: contract.CodeOverloaded, Message: "the store is nearly full (store.retention); wait until requests have ended, or erase some"}
	}
	r.open.room.Store(now.Add(roomFor).UnixMilli())
	return nil
}

// create puts a request on record. A caller who leaves meanwhile does not cut it
// off in the middle: what is half accepted would be done, and sent again.
func (r *Router) create(ctx context.Context, rec *requests.Record) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	err := r.keep.Book.Create(ctx, rec)
	if errors.Is(err, store.ErrUnavailable) { // it may be written all the same
		if known, getErr := r.keep.Book.Get(ctx, rec.ID); getErr == nil && known.Owner == rec.Owner {
			return nil
		}
		r.withdraw(rec)
		return errors.Join(errPerhaps, r.storeTrouble(ctx, "the request cannot be stored", err))
	}
	if err != nil {
		return r.storeTrouble(ctx, "the request cannot be stored", err)
	}
	return nil
}

// withdraw ends a request that may be on record although its caller was told that
// it was not accepted. One with a key stays: who sends that again takes it up.
func (r *Router) withdraw(rec *requests.Record) {
	if rec.Request.Idempotency != nil {
		return
	}
	r.group.Go("withdraw request "+rec.ID, func(ctx context.Context) error {
		t := r.owned(rec, ctx.Done(), execution.NoPermit{})
		_, _ = t.ChangeUntilStored(ctx, func(rec *requests.Record) error { // where it is not on record there is nothing to do
			resp := rec.Snapshot()
			resp.Status = contract.StatusCancelled
			return rec.End(contract.StatusCancelled, resp, r.cfg.Now())
		})
		return nil
	})
}

// newRecord is what has to be known of a request to go on with it elsewhere.
func (r *Router) newRecord(j *job) *requests.Record {
	now := r.cfg.Now().UTC()
	rec := &requests.Record{
		ID: j.req.RequestID, TraceID: j.req.TraceID, Caller: *j.caller, Request: *j.req,
		History: j.history, OnlyAgent: j.only,
		CreatedAt: now, Deadline: now.Add(r.timeout(j.req)),
		State: requests.StateAccepted, Owner: r.keep.Owner, Epoch: 1,
	}
	if j.pinned != nil {
		rec.Pinned = (*requests.PinnedClassification)(j.pinned)
	}
	return rec
}

// follow works on the request of a record in the background.
func (r *Router) follow(j *job, rec *requests.Record) {
	deadline := rec.Deadline
	r.group.Go("request "+rec.ID, func(ctx context.Context) error {
		defer r.open.leave()
		j.permit = r.limiter.NewPermit()
		j.tracked = r.owned(rec, ctx.Done(), j.permit)
		j.tell = r.publisher(ctx)
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		j.inflight = inflight.NewRequest(rec.ID, rec.TraceID, j.caller, stop)
		r.inflight.Add(j.inflight)
		var resp *contract.Response
		defer func() { r.inflight.Remove(j.inflight, resp) }()
		err := run.CatchPanic(func() (err error) {
			resp, err = r.serveInPlace(ctx, j)
			return err
		})
		r.ended(ctx, j, resp, err)
		return nil
	})
}

// serveInPlace serves the request once there is a slot for it. One whose time is
// up before is served as well: somebody has to say so.
func (r *Router) serveInPlace(ctx context.Context, j *job) (*contract.Response, error) {
	j.permit.Acquire(ctx)
	defer j.permit.Release()
	if errors.Is(context.Cause(ctx), dispatch.ErrHandedOver) || r.stopping.Load() {
		return nil, dispatch.ErrHandedOver
	}
	return r.serve(ctx, j)
}

// ended tells the end of a request nobody waits for, and deals with one that
// found none.
func (r *Router) ended(ctx context.Context, j *job, resp *contract.Response, err error) {
	switch {
	case err == nil:
		r.tellEvent(j, &contract.Event{Type: contract.EventFinal, Response: resp})
	case errors.Is(err, dispatch.ErrHandedOver), errors.Is(err, requests.ErrEnded), errors.Is(err, requests.ErrNotOwner):
		// The next process goes on with it, or somebody else has ended it and told.
	case context.Cause(ctx) != nil && errors.Is(context.Cause(ctx), dispatch.ErrHandedOver):
	default:
		r.cfg.Logger.ErrorContext(ctx, "an asynchronous request failed", "request_id", j.req.RequestID, "err", err)
		r.giveUp(ctx, j)
	}
}

// giveUp ends a request that could not be served at all, by a panic say, or
// because nothing can be put on record.
func (r *Router) giveUp(ctx context.Context, j *job) {
	rec, err := j.tracked.ChangeUntilStored(ctx, func(rec *requests.Record) error {
		resp := rec.Snapshot()
		resp.Status = contract.StatusFailed
		closeTasks(resp, contract.TaskFailed, contract.TaskOutcomeUnknown, "the router failed while it was being done")
		if len(resp.Tasks) == 0 && j.plan == nil && rec.Decision != nil {
			for _, pt := range plan.Restore(rec, j.view.Fleet).Parts {
				resp.Tasks = append(resp.Tasks, r.executor.NotSent(&pt, contract.TaskAgentUnavailable, "the router could not put on record that the task goes out").Report)
			}
		}
		return rec.End(contract.StatusFailed, resp, r.cfg.Now())
	})
	if err != nil {
		return // logged by who could not write it before; the next start tries again
	}
	_ = r.recordOutcome(ctx, j, rec.Response) // logged
	r.record(ctx, j, rec.Response)
	r.tellEvent(j, &contract.Event{Type: contract.EventFinal, Response: rec.Response})
}

// closeTasks ends the tasks of an answer that are still running.
func closeTasks(resp *contract.Response, status contract.TaskStatus, code contract.TaskCode, detail string) {
	for i := range resp.Tasks {
		if t := &resp.Tasks[i]; t.Status == contract.TaskRunning {
			t.Status, t.Error = status, &contract.TaskError{Code: code, Detail: detail}
		}
	}
}

// drain waits until no request nobody waits for is at work, or ctx ends: what
// only waits for results does not count.
// Nothing more is given out; what was is waited for.
func (r *Router) drain(ctx context.Context) {
	r.stopping.Store(true)
	r.limiter.WaitIdle(ctx)
}

// owned is the record of a request as this process changes it.
func (r *Router) owned(rec *requests.Record, stopping <-chan struct{}, permit execution.Permit) *execution.OwnedRequest {
	return &execution.OwnedRequest{Book: r.keep.Book, ID: rec.ID, Owner: rec.Owner, Epoch: rec.Epoch, Stopping: stopping, Permit: permit}
}

// maxAtWork is how many asynchronous requests are executed at a time.
const maxAtWork = 256

// maxOpen is how many requests nobody waits for may be open. Each costs some
// memory until it ends; one more is refused, never dropped.
const maxOpen = 20_000

// openCount counts them.
type openCount struct {
	n    atomic.Int64
	room atomic.Int64 // until when, in Unix milliseconds, there is known to be room for more
}

// roomFor is how long it is believed that the store has room for more requests.
const roomFor = 200 * time.Millisecond

// enter reports whether there may be one more; each true is followed by a leave.
func (o *openCount) enter() bool {
	if o.n.Add(1) > maxOpen {
		o.n.Add(-1)
		return false
	}
	return true
}

// force counts one that is there already.
func (o *openCount) force() { o.n.Add(1) }

func (o *openCount) leave() { o.n.Add(-1) }

// OpenRequests counts the requests nobody waits for that have not ended.
func (r *Router) OpenRequests() int { return int(r.open.n.Load()) }
