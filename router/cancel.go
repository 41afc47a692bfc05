package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
)

// storedCanceller cancels asynchronous requests.
type storedCanceller struct{ router *Router }

// CancelStored stores the cancellation before the tasks are stopped, so that
// whatever their agents still send is late. If the request has ended already, its
// response is returned.
func (c storedCanceller) CancelStored(ctx context.Context, id string) (*contract.Response, error) {
	r := c.router
	rec, err := r.keep.Book.Update(ctx, id, func(rec *requests.Record) error {
		resp := rec.Snapshot()
		resp.Status = contract.StatusCancelled
		if rec.Decision != nil {
			resp.Data.Mode = contract.DataDispatch
		}
		closeTasks(resp, contract.TaskCancelled, contract.TaskWasCancelled, "the request was cancelled")
		return rec.End(contract.StatusCancelled, resp, r.cfg.Now())
	})
	if errors.Is(err, requests.ErrEnded) {
		if rec, err = r.keep.Book.Get(ctx, id); err == nil {
			return rec.Snapshot(), nil
		}
	}
	if err != nil {
		return nil, r.storeTrouble(ctx, "the request cannot be cancelled", err)
	}
	if executing := r.inflight.Lookup(id); executing != nil {
		executing.Cancel(inflight.ErrCancelled)
	} else {
		r.executor.StopTasks(rec, r.fleet())
	}
	j := r.rejoin(rec)
	j.tracked = &execution.OwnedRequest{Book: r.keep.Book, ID: id} // settles the index with the outcome
	_ = r.recordOutcome(ctx, j, rec.Response)                      // logged
	r.record(ctx, j, rec.Response)
	j.tell = r.publisher(ctx)
	r.tellEvent(j, &contract.Event{Type: contract.EventFinal, Response: rec.Response})
	return rec.Response, nil
}
