package router

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
)

// work serves a request somebody waits for, by its deadline. Who leaves cancels
// it, unless the caller named it with an Idempotency-Key: then it goes on to its
// end, so that the answer is there when the caller comes back for it.
func (r *Router) work(ctx context.Context, j *job) (*contract.Response, error) {
	if j.reservation.Held() {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeout(ctx, r.timeout(j.req))
	defer cancel()
	j.inflight = inflight.NewRequest(j.req.RequestID, j.req.TraceID, j.caller, stop)
	if j.dryRun() {
		return r.serve(ctx, j)
	}
	r.inflight.Add(j.inflight)
	var resp *contract.Response
	defer func() { r.inflight.Remove(j.inflight, resp) }()
	resp, err := r.serve(ctx, j)
	return resp, err
}
