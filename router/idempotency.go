package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/idempotency"
)

// keyReserver reserves idempotency keys.
type keyReserver interface {
	Reserve(ctx context.Context, caller *contract.Caller, id *contract.Idempotency, requestID string) (idempotency.Reservation, *contract.Response, error)
	Release(ctx context.Context, r idempotency.Reservation)
}

// reserveKey reserves the idempotency key of the request, if it has one. If the
// request was sent before, its stored response is returned.
func (r *Router) reserveKey(ctx context.Context, j *job) (stored *contract.Response, err error) {
	if j.req.Idempotency == nil || j.dryRun() {
		return nil, nil
	}
	j.reservation, stored, err = r.keys.Reserve(ctx, j.caller, j.req.Idempotency, j.req.RequestID)
	return stored, err
}

// keyedRequests finds the requests that reserved idempotency keys.
type keyedRequests struct{ router *Router }

// FindFirst implements idempotency.Requests.
func (k keyedRequests) FindFirst(ctx context.Context, requestID string) (idempotency.State, func() (*contract.Response, error), error) {
	var f found
	if err := k.router.lookUp(ctx, requestID, &f, wholeLife); err != nil {
		return 0, nil, err
	}
	state := idempotency.Stored
	switch {
	case f.inflight != nil:
		state = idempotency.Executing
	case f.record != nil && !f.record.State.Terminal() && k.router.inflight.Lookup(requestID) == nil:
		state = idempotency.Orphaned
	case f.record == nil && f.outcome == nil:
		state = idempotency.Undecided
	case f.outcome != nil && f.outcome.Content == nil:
		state = idempotency.Erased
	}
	return state, func() (*contract.Response, error) { return f.response(requestID) }, nil
}

// Resume implements idempotency.Requests.
func (k keyedRequests) Resume(ctx context.Context, requestID string) error {
	return errors.Join(k.router.keep.Book.AddOpen(ctx, requestID), k.router.resume(ctx, requestID))
}
