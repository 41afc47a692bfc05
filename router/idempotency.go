package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/requests"
)

// keyReserver reserves idempotency keys.
type keyReserver interface {
	Reserve(ctx context.Context, caller *contract.Caller, id *contract.Idempotency, requestID string) (idempotency.Reservation, *contract.Response, error)
	Start(ctx context.Context, r idempotency.Reservation, requestID string) error
	End(ctx context.Context, r idempotency.Reservation, resp *contract.Response)
	Release(ctx context.Context, r idempotency.Reservation, requestID string)
}

// reserveKey reserves the idempotency key of the request, if it has one. If the
// request was sent before, its stored response is returned.
func (run *requestRun) reserveKey(ctx context.Context, keys keyReserver) (stored *contract.Response, err error) {
	if run.Idempotency == nil || run.isDryRun() {
		return nil, nil
	}
	run.reservation, stored, err = keys.Reserve(ctx, run.Caller, run.Idempotency, run.RequestID)
	run.KeyName = run.reservation.Name()
	return stored, err
}

// keyedRequests finds and resumes the requests that reserved idempotency keys.
type keyedRequests struct {
	*history.Service
	open   *requests.Store
	runner *asyncrun.Runner
}

// Resume implements idempotency.Requests. The process of the request stopped before
// the request was in the index of open ones.
func (k keyedRequests) Resume(ctx context.Context, requestID string) error {
	return errors.Join(k.open.AddOpen(ctx, requestID), k.runner.Resume(ctx, requestID))
}
