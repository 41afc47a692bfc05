package router

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/decisionlog"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/requests"
)

// Submit stores a request durably, and then routes it in the background.
func (r *Router) Submit(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	resp, err := r.submitAsync(ctx, req, caller)
	return r.view.filter(caller).Response(resp), err
}

// submitAsync stores an asynchronous request and starts it.
func (r *Router) submitAsync(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	run, err := r.acceptRequest(ctx, req, caller)
	if err != nil {
		return nil, err
	}
	if err := r.async.CheckStore(ctx); err != nil {
		return nil, err
	}
	if stored, err := run.reserveKey(ctx, r.keys); stored != nil || err != nil {
		return stored, err
	}
	var resp *contract.Response
	if err = r.cfg.Storage.AuditLog.Admit(run.Caller); err == nil {
		resp, err = r.async.Submit(ctx, asyncPipeline{r}.acceptedRun(run))
	}
	if err != nil && !errors.Is(err, asyncrun.ErrUncertain) {
		r.keys.Release(ctx, run.reservation, run.RequestID)
	}
	return resp, err
}

// asyncPipeline implements asyncrun.Pipeline.
type asyncPipeline struct{ router *Router }

// acceptedRun returns the request with the pipeline for it.
func (p asyncPipeline) acceptedRun(run *requestRun) *asyncrun.Accepted {
	return &asyncrun.Accepted{
		Request: run.Request, Timeout: p.router.acceptor.RequestTimeout(run.Request.Request), Fleet: run.view.Fleet,
		Serve: func(ctx context.Context, stored *asyncrun.Run) (*contract.Response, error) {
			run.async = true
			run.view = p.router.view.get() // the registry may have changed while the request was queued
			run.persistence, run.recorder, run.emit, run.inflight = stored.Persistence, stored, stored.Emit, stored.Inflight
			run.restored, run.previous = stored.Plan, stored.Previous
			return p.router.runPipeline(ctx, run)
		},
	}
}

// Restore implements asyncrun.Pipeline. The restored run gets the current view, which
// is empty if a request is cancelled before the first SetView.
func (p asyncPipeline) Restore(rec *requests.Record) *asyncrun.Accepted {
	return p.acceptedRun(p.restoreRun(rec))
}

func (p asyncPipeline) restoreRun(rec *requests.Record) *requestRun {
	return &requestRun{
		Request: p.router.acceptor.Restore(rec), view: p.router.view.get(), current: &p.router.view,
		timings: decisionlog.ResumeTimings(p.router.cfg.Now, rec.CreatedAt),
	}
}

// Report implements asyncrun.Pipeline.
func (p asyncPipeline) Report(ctx context.Context, resp *contract.Response, acceptedAt time.Time) {
	p.router.reporter.ReportResponse(ctx, resp, decisionlog.ResumeTimings(p.router.cfg.Now, acceptedAt), false)
}

// ExplainMissingSummary implements asyncrun.Pipeline.
func (p asyncPipeline) ExplainMissingSummary(resp *contract.Response) {
	if p.router.needsSummary(resp) {
		resp.Data.DegradedReason = llm.OutcomeCancelled
	}
}
