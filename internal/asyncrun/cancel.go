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
// response, in which the results that were delivered count. The detail is the reason
// in its tasks. A request that has ended before keeps its response, which is returned
// with requests.ErrEnded. The error wraps store.ErrNotFound if the request is not stored. The
// end is recorded first, so that results which arrive afterwards do not count.
func (r *Runner) CancelStored(ctx context.Context, id, detail string) (*contract.Response, error) {
	cancelled := contract.TaskError{Code: contract.TaskWasCancelled, Detail: detail}
	why := &interruption{status: contract.TaskCancelled, sent: cancelled, notSent: cancelled}
	var accepted *Accepted
	owner := ""
	rec, err := r.cfg.Store.Update(ctx, id, func(rec *requests.Record) error {
		accepted = r.pipeline.Restore(rec)
		resp := r.interruptedResponse(rec, accepted.Request, why)
		owner = rec.Owner
		if err := rec.End(resp.Status, resp, r.cfg.Now()); err != nil {
			return err
		}
		return rec.AdoptEnd(r.cfg.Owner, r.cfg.Now()) // this process concludes it
	})
	if errors.Is(err, requests.ErrEnded) {
		if rec, err = r.cfg.Store.Get(ctx, id); err == nil {
			return rec.Snapshot(), requests.ErrEnded
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, err
	case err != nil:
		return nil, store.CallerError(ctx, r.cfg.Logger, "the request cannot be cancelled", err)
	}
	if executing := r.cfg.Inflight.Lookup(id); executing != nil {
		executing.Cancel(inflight.ErrCancelled) // the run stops its agents
	} else if r.cfg.Peers.IsExecuting(owner) {
		r.cfg.Peers.Announce(id) // that process stops the agents
	} else {
		r.cfg.Executor.StopTasks(rec, accepted.Fleet)
	}
	r.concludeStored(ctx, accepted.Request, rec, r.newEmitter(id))
	return rec.Response, nil
}
