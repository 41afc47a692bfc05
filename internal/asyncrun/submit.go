package asyncrun

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// ErrUncertain is joined to the error of a request that may be stored although the
// store did not confirm it. Its idempotency key must stay reserved.
var ErrUncertain = errors.New("the request may have been stored")

// CheckStore rejects a request at once if the store does not accept it now. It is
// called before anything is written for the request, because a write may wait.
func (r *Runner) CheckStore(ctx context.Context) error {
	if err := r.cfg.Store.CheckWritable(); err != nil {
		return store.CallerError(ctx, r.cfg.Logger, "the request cannot be stored", err)
	}
	return nil
}

// Submit stores the request durably and then runs it in the background. The
// request survives a crash once Submit has returned without an error.
func (r *Runner) Submit(ctx context.Context, accepted *Accepted) (*contract.Response, error) {
	if err := r.capacity.reserve(ctx, accepted.Caller); err != nil {
		return nil, err
	}
	rec := r.newRecord(accepted.Request, accepted.Timeout)
	rec.Traceparent = telemetry.Traceparent(ctx)
	if err := r.storeRequest(ctx, rec); err != nil {
		r.capacity.release(&rec.Caller)
		return nil, err
	}
	resp := rec.Snapshot()
	r.startRun(accepted, rec)
	return resp, nil
}

// newRecord returns everything that another process needs to resume the request.
func (r *Runner) newRecord(req *execution.Request, timeout time.Duration) *requests.Record {
	now := r.cfg.Now().UTC()
	return &requests.Record{
		ID: req.RequestID, TraceID: req.TraceID, Caller: *req.Caller, Request: *req.Request,
		History: req.Turns, Pinned: (*requests.PinnedClassification)(req.Pinned), Previous: req.Previous, OnlyAgent: req.OnlyAgent, KeyName: req.KeyName,
		CreatedAt: now, Deadline: now.Add(timeout),
		State: requests.StateAccepted, Owner: r.cfg.Owner, Epoch: 1,
	}
}

// storeRequest stores a new request. The caller's disconnect must not interrupt the
// write: a request that is stored without a confirmation would be executed, and
// sent again by the caller.
func (r *Runner) storeRequest(ctx context.Context, rec *requests.Record) error {
	ctx, cancel := execution.Detach(ctx)
	defer cancel()
	err := r.createRecord(ctx, rec)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, store.ErrUnavailable):
		return store.CallerError(ctx, r.cfg.Logger, "the request cannot be stored", err)
	}
	r.withdrawRequest(rec)
	return errors.Join(ErrUncertain, store.CallerError(ctx, r.cfg.Logger, "the request cannot be stored", err))
}

// createRecord creates the record. After store.ErrUnavailable it may be stored.
func (r *Runner) createRecord(ctx context.Context, rec *requests.Record) error {
	err := r.cfg.Store.Create(ctx, rec)
	if errors.Is(err, store.ErrUnavailable) {
		// The write may have happened although it was not confirmed.
		if stored, getErr := r.cfg.Store.Get(ctx, rec.ID); getErr == nil && stored.Owner == rec.Owner {
			return nil
		}
	}
	return err
}

// withdrawRequest ends a request that may be stored although its caller got an error. A
// request with an idempotency key is left alone: sending it again resumes it.
func (r *Runner) withdrawRequest(rec *requests.Record) {
	if rec.Request.Idempotency != nil {
		return
	}
	r.group.Go("withdraw request "+rec.ID, func(ctx context.Context) error {
		owned := r.ownedRequest(rec, ctx.Done(), execution.NoPermit{})
		_, _ = owned.ChangeUntilStored(ctx, func(rec *requests.Record) error { // if it is not stored, there is nothing to do
			resp := rec.Snapshot()
			resp.Status = contract.StatusCancelled
			return rec.End(contract.StatusCancelled, resp, r.cfg.Now())
		})
		return nil
	})
}
