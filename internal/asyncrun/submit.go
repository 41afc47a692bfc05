package asyncrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// ErrUncertain is joined to the error of a request that may be stored although the
// store did not confirm it. Its idempotency key must stay reserved.
var ErrUncertain = errors.New("the request may have been stored")

// Submit stores the request durably and then runs it in the background. The
// request survives a crash once Submit has returned without an error.
func (r *Runner) Submit(ctx context.Context, accepted *Accepted) (*contract.Response, error) {
	if err := r.capacity.reserve(ctx); err != nil {
		return nil, err
	}
	rec := r.newRecord(accepted)
	if err := r.storeRequest(ctx, rec); err != nil {
		r.capacity.release()
		return nil, err
	}
	resp := rec.Snapshot()
	r.startRun(accepted, rec)
	return resp, nil
}

// newRecord returns everything that another process needs to resume the request.
func (r *Runner) newRecord(a *Accepted) *requests.Record {
	now := r.cfg.Now().UTC()
	return &requests.Record{
		ID: a.RequestID, TraceID: a.TraceID, Caller: *a.Caller, Request: *a.Request.Request,
		History: a.Turns, Pinned: (*requests.PinnedClassification)(a.Pinned), OnlyAgent: a.OnlyAgent, KeyName: a.KeyName,
		CreatedAt: now, Deadline: now.Add(a.Timeout),
		State: requests.StateAccepted, Owner: r.cfg.Owner, Epoch: 1,
	}
}

// storeRequest stores a new request. The caller's disconnect must not interrupt the
// write: a request that is stored without a confirmation would be executed, and
// sent again by the caller.
func (r *Runner) storeRequest(ctx context.Context, rec *requests.Record) error {
	ctx, cancel := execution.Detach(ctx)
	defer cancel()
	err := r.cfg.Store.Create(ctx, rec)
	if err == nil {
		return nil
	}
	if !errors.Is(err, store.ErrUnavailable) {
		return store.CallerError(ctx, r.cfg.Logger, "the request cannot be stored", err)
	}
	// The write may have happened although it was not confirmed.
	if stored, getErr := r.cfg.Store.Get(ctx, rec.ID); getErr == nil && stored.Owner == rec.Owner {
		return nil
	}
	r.withdrawRequest(rec)
	return errors.Join(ErrUncertain, store.CallerError(ctx, r.cfg.Logger, "the request cannot be stored", err))
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

// maxOpen bounds the asynchronous requests that have not ended, because each of
// them needs some memory. Further ones are rejected.
const maxOpen = 20_000

// capacityValidity is how long a check of the remaining space in the store is valid.
const capacityValidity = 200 * time.Millisecond

// capacity is the admission control of asynchronous requests.
type capacity struct {
	store        *requests.Store
	logger       *slog.Logger
	open         atomic.Int64
	checkedUntil atomic.Int64 // Unix milliseconds
}

// reserve admits one request, to be followed by release when the request ends. It
// rejects the request if too many are open, or if the remaining space in the store
// is reserved for the requests already accepted.
func (c *capacity) reserve(ctx context.Context) error {
	if c.open.Add(1) > maxOpen {
		c.release()
		return &contract.Error{
			Code: contract.CodeOverloaded, Message: fmt.Sprintf("%d requests are open already; wait until some have ended", maxOpen),
		}
	}
	if err := c.checkSpace(ctx); err != nil {
		c.release()
		return err
	}
	return nil
}

func (c *capacity) checkSpace(ctx context.Context) error {
	now := time.Now()
	if now.UnixMilli() < c.checkedUntil.Load() {
		return nil
	}
	switch ok, err := c.store.HasCapacity(ctx); {
	case err != nil:
		return store.CallerError(ctx, c.logger, "the request cannot be stored", err)
	case !ok:
		return &contract.Error{
			Code: contract.CodeOverloaded, Message: "the store is nearly full (store.retention); wait until requests have ended, or erase some",
		}
	}
	c.checkedUntil.Store(now.Add(capacityValidity).UnixMilli())
	return nil
}

// force admits a request that was stored before.
func (c *capacity) force() { c.open.Add(1) }

func (c *capacity) release() { c.open.Add(-1) }
