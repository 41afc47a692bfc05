package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
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

// keyedRequests finds and resumes the requests that reserved idempotency keys.
type keyedRequests struct {
	*history.Service
	router *Router
}

// Resume implements idempotency.Requests.
func (k keyedRequests) Resume(ctx context.Context, requestID string) error {
	return errors.Join(k.router.keep.Book.AddOpen(ctx, requestID), k.router.resume(ctx, requestID))
}
