package router

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/decisionlog"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
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

// Resume resumes the stored requests that no live process executes, and records that the
// other ones of the previous process were interrupted. New requests may be routed
// meanwhile. If the store rejects a write, it retries until ctx ends.
func (r *Router) Resume(ctx context.Context) error { return r.async.ResumeAll(ctx) }

// TriggerTakeOver is to be called after other processes that share the store may have ended:
// TakeOver then looks for their requests. It does not wait.
func (r *Router) TriggerTakeOver() { r.async.TriggerTakeOver() }

// TakeOver resumes the stored requests of other processes that end, until ctx ends.
func (r *Router) TakeOver(ctx context.Context) error { return r.async.TakeOver(ctx) }

// CloseReplica records an outcome for each synchronous request that a dead replica did not
// complete, and returns their number. See history.Journal.
func (r *Router) CloseReplica(ctx context.Context, log history.ChainCloser, replica string) (int, error) {
	return r.journal.CloseReplica(ctx, log, replica, func(ctx context.Context, requestID string) (bool, error) {
		_, err := r.cfg.Storage.Requests.Get(ctx, requestID)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	})
}

// FollowPeers acts on the messages of the other processes that share the store, until
// ctx ends.
func (r *Router) FollowPeers(ctx context.Context) error {
	return r.peers.Follow(ctx, r.callbacks, r.inflight)
}

// Close is the graceful shutdown of asynchronous requests: tasks that were sent are
// awaited until ctx ends, and all else is resumed after the next start. It also waits for
// the responses that are recorded in the background.
func (r *Router) Close(ctx context.Context) {
	r.async.Close(ctx)
	if err := r.journal.Close(ctx); err != nil {
		r.cfg.Logger.WarnContext(ctx, "some responses may not be in the audit log", "error", err)
	}
}

// OpenRequests returns how many asynchronous requests have not ended.
func (r *Router) OpenRequests() int { return r.async.CountOpen() }

// PulledTask implements pulltarget.TaskSource: any process with the store can give a task
// to its agent, so the request is restored from its record. The registry in force decides
// if the agent may get it.
func (r *Router) PulledTask(rec *requests.Record, task *requests.Task) (pulled contract.Task, reason string) {
	restored := plan.Restore(rec)
	if task.Part >= len(restored.Parts) {
		return pulled, "the request has no such task"
	}
	part := &restored.Parts[task.Part]
	run := asyncPipeline{r}.restoreRun(rec)
	agent, refusal := (&sendCheck{run, restored, r.cfg.IsRevoked}).Eligible(part, task.AgentID)
	switch {
	case agent == nil:
		return pulled, refusal.Detail
	case agent.Endpoint.Protocol != contract.ProtocolPull:
		return pulled, task.AgentID + " does not pull its tasks any more"
	}
	return execution.PulledTask(run.Request, part, agent), ""
}

// Callbacks accepts what agents post while they work on a task.
func (r *Router) Callbacks() *execution.Callbacks { return r.callbacks }
