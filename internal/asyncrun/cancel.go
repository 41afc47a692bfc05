package asyncrun

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// CancelStored ends a stored request, whichever process executes it, and returns its
// response. A request that has ended before keeps its response. The end is
// recorded first, so that results which arrive afterwards do not count.
func (r *Runner) CancelStored(ctx context.Context, id string) (*contract.Response, error) {
	rec, err := r.cfg.Store.Update(ctx, id, func(rec *requests.Record) error {
		resp := rec.Snapshot()
		resp.Status = contract.StatusCancelled
		if rec.Decision != nil {
			resp.Data.Mode = contract.DataDispatch
		}
		endTasks(resp, contract.TaskCancelled, contract.TaskWasCancelled, "the request was cancelled")
		return rec.End(contract.StatusCancelled, resp, r.cfg.Now())
	})
	if errors.Is(err, requests.ErrEnded) {
		if rec, err = r.cfg.Store.Get(ctx, id); err == nil {
			return rec.Snapshot(), nil
		}
	}
	if err != nil {
		return nil, store.CallerError(ctx, r.cfg.Logger, "the request cannot be cancelled", err)
	}
	accepted := r.pipeline.Restore(rec)
	if executing := r.cfg.Inflight.Lookup(id); executing != nil {
		executing.Cancel(inflight.ErrCancelled) // the run stops its agents
	} else {
		r.cfg.Executor.StopTasks(rec, accepted.Fleet)
	}
	r.concludeStored(ctx, accepted, rec, r.newEmitter(id))
	return rec.Response, nil
}
