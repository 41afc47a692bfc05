package router

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
)

// submitAsync stores an asynchronous request and starts it.
func (r *Router) submitAsync(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	run, err := r.acceptor.acceptRequest(ctx, r.view.Load(), req, caller)
	if err != nil {
		return nil, err
	}
	if stored, err := r.reserveKey(ctx, run); stored != nil || err != nil {
		return stored, err
	}
	resp, err := r.async.Submit(ctx, r.acceptedRun(run))
	if err != nil && !errors.Is(err, asyncrun.ErrUncertain) {
		r.keys.Release(ctx, run.reservation)
	}
	return resp, err
}

// acceptedRun returns the request with the pipeline for it.
func (r *Router) acceptedRun(run *requestRun) *asyncrun.Accepted {
	return &asyncrun.Accepted{
		Request: run.Request, Timeout: r.acceptor.requestTimeout(run.Request.Request), Fleet: run.view.Fleet,
		Serve: func(ctx context.Context, stored *asyncrun.Run) (*contract.Response, error) {
			run.async = true
			run.mode, run.recorder, run.emit, run.inflight = stored.Mode, stored, stored.Emit, stored.Inflight
			run.restored, run.previous = stored.Plan, stored.Previous
			return r.runPipeline(ctx, run)
		},
	}
}

// asyncPipeline implements asyncrun.Pipeline.
type asyncPipeline struct{ router *Router }

func (p asyncPipeline) Restore(rec *requests.Record) *asyncrun.Accepted {
	return p.router.acceptedRun(p.router.acceptor.restoreRun(rec, p.router.currentView()))
}

func (p asyncPipeline) Report(ctx context.Context, resp *contract.Response, acceptedAt time.Time) {
	timings := startTimings(p.router.cfg.Now)
	timings.start = acceptedAt
	p.router.reporter.reportResponse(ctx, resp, timings, false)
}

// Recover finds out which requests the previous process left incomplete. It must
// be called before the first request.
func (r *Router) Recover(ctx context.Context) error { return r.async.Recover(ctx) }

// Resume resumes the asynchronous requests of the previous process, and records
// that its synchronous ones were interrupted. If the store rejects a write, it
// retries until ctx ends.
func (r *Router) Resume(ctx context.Context) error { return r.async.ResumeAll(ctx) }

// Close is the graceful shutdown of asynchronous requests: tasks that were sent are
// awaited until ctx ends, and all else is resumed after the next start.
func (r *Router) Close(ctx context.Context) { r.async.Close(ctx) }

// OpenRequests returns how many asynchronous requests have not ended.
func (r *Router) OpenRequests() int { return r.async.CountOpen() }

// Callbacks accepts what agents post while they work on a task.
func (r *Router) Callbacks() *execution.Callbacks { return r.callbacks }
