package asyncrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/quota"
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

// maxOpen bounds the asynchronous requests that have not ended, because each of
// them needs some memory. Further ones are rejected.
const maxOpen = 20_000

// capacityValidity is how long a check of the remaining space in the store is valid.
const capacityValidity = 200 * time.Millisecond

// capacity is the admission control of asynchronous requests.
type capacity struct {
	store        *requests.Store
	logger       *slog.Logger
	checkedUntil atomic.Int64 // Unix milliseconds

	mu     sync.Mutex
	open   int
	openOf map[quota.Owner]int // without zeros
}

// reserve admits one request, to be followed by release when the request ends. It
// rejects the request if too many are open, if the share of its owner is used up, or
// if the remaining space in the store is reserved for the requests already accepted.
func (c *capacity) reserve(ctx context.Context, caller *contract.Caller) error {
	if err := c.reserveOpen(caller); err != nil {
		return err
	}
	err := c.checkSpace(ctx, caller)
	if err != nil {
		c.release(caller)
	}
	return err
}

// reserveOpen counts one more open request. One owner may have its share of them.
func (c *capacity) reserveOpen(caller *contract.Caller) error {
	owner, share := quota.OwnerOf(caller), int(c.store.Quota().Share()*maxOpen)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.open >= maxOpen:
		return &contract.Error{
			Code: contract.CodeOverloaded, Message: fmt.Sprintf("%d requests are open already; wait until some have ended", maxOpen),
		}
	case c.openOf[owner] >= share:
		return &contract.Error{Code: contract.CodeQuotaExceeded, Message: fmt.Sprintf(
			"%d asynchronous requests are open already (store.tenant_share); wait until some have ended, or cancel some", share)}
	}
	c.add(owner, 1)
	return nil
}

func (c *capacity) add(owner quota.Owner, n int) {
	c.open += n
	if c.openOf == nil {
		c.openOf = map[quota.Owner]int{}
	}
	if c.openOf[owner] += n; c.openOf[owner] == 0 {
		delete(c.openOf, owner)
	}
}

func (c *capacity) checkSpace(ctx context.Context, caller *contract.Caller) error {
	if err := c.store.MakeRoom(ctx, caller); err != nil {
		if _, ok := errors.AsType[*contract.Error](err); ok {
			return err
		}
		return store.CallerError(ctx, c.logger, "the request cannot be stored", err)
	}
	now := time.Now()
	if now.UnixMilli() < c.checkedUntil.Load() {
		return nil
	}
	ok, err := c.store.HasCapacity(ctx)
	if err == nil && !ok {
		ok, err = c.store.FreeCapacity(ctx)
	}
	switch {
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

// addStored admits a request that was stored before.
func (c *capacity) addStored(caller *contract.Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(quota.OwnerOf(caller), 1)
}

func (c *capacity) release(caller *contract.Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(quota.OwnerOf(caller), -1)
}

func (c *capacity) countOpen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}
