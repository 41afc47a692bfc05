package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Cancel ends a request of the caller's own and tells its agents to stop. One that was cancelled
// before is as good; one that has ended otherwise is a conflict.
func (r *Router) Cancel(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error) {
	f, err := r.find(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	if !visibility.MayEndRequest(caller, f.owner) {
		return nil, errNotOwner("cancel")
	}
	resp, err := r.cancel(ctx, id, &f)
	return r.visibilityFilter(caller, f.owner).Response(resp), err
}

func (r *Router) cancel(ctx context.Context, id string, f *found) (*contract.Response, error) {
	switch {
	case f.record != nil:
		return r.cancelRecorded(ctx, id)
	case f.inflight != nil:
		f.inflight.Cancel(execution.ErrCancelled)
		select {
		case <-f.inflight.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return cancelled(f.inflight.State())
	}
	resp, err := f.response(id)
	if err != nil {
		return nil, err
	}
	return cancelled(resp)
}

func cancelled(resp *contract.Response) (*contract.Response, error) {
	if resp.Status.Terminal() && resp.Status != contract.StatusCancelled {
		return nil, &contract.Error{Code: contract.CodeConflict, Message: "the request has ended already: " + string(resp.Status)}
	}
	return resp, nil
}

// cancelRecorded puts the end on record first: whatever the agents still send
// comes too late.
func (r *Router) cancelRecorded(ctx context.Context, id string) (*contract.Response, error) {
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
			return cancelled(rec.Snapshot())
		}
	}
	if err != nil {
		return nil, r.storeTrouble(ctx, "the request cannot be cancelled", err)
	}
	if executing := r.inflight.Lookup(id); executing != nil {
		executing.Cancel(execution.ErrCancelled) // agents at work hear of it
	} else {
		r.executor.StopTasks(rec, r.view.Load().Fleet)
	}
	j := r.rejoin(rec)
	j.tracked = &execution.OwnedRequest{Book: r.keep.Book, ID: id} // settles the index with the outcome
	_ = r.recordOutcome(ctx, j, rec.Response)                      // logged
	r.record(ctx, j, rec.Response)
	j.tell = r.publisher(ctx)
	r.tellEvent(j, &contract.Event{Type: contract.EventFinal, Response: rec.Response})
	return rec.Response, nil
}
