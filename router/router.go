package router

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/acceptance"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/decisionlog"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/router/plan"
)

// Router runs requests through the pipeline of the package comment. It is safe for
// concurrent use; its View may be swapped while requests run.
type Router struct {
	cfg        Config
	view       currentView
	acceptor   *acceptance.Acceptor
	keys       keyReserver
	classifier Classifier
	questions  *session.Questions
	fallback   *fallbackpolicy.Handler
	executor   *execution.Executor
	callbacks  *execution.Callbacks
	async      *asyncrun.Runner
	inflight   *inflight.Table
	peers      *asyncrun.Peers
	sessions   *session.Store
	journal    *history.Journal
	history    *history.Service
	reporter   *decisionlog.Reporter
}

// runPipeline runs the pipeline for an accepted request, synchronous or
// asynchronous. A resumed request may have a plan already.
func (r *Router) runPipeline(ctx context.Context, run *requestRun) (*contract.Response, error) {
	p := run.restored
	if p == nil {
		classification := r.classifyRequest(ctx, run)
		p = r.makePlan(ctx, run, classification)
		run.addEvidence(p)
	}
	run.showDecision(&p.Decision)

	resp := p.Response(run.Request.Request)
	var outcomes []plan.Outcome
	var err error
	switch {
	case len(p.Options) > 0:
		r.askCaller(ctx, run, p, resp)
	case p.Reason != "":
		err = r.applyFallback(ctx, run, p, resp)
	case run.isDryRun():
		resp.Status = contract.StatusAccepted
	default:
		outcomes, err = r.executePlan(ctx, run, p)
		p.Aggregate(resp, outcomes)
		r.summarizeResults(ctx, run, resp)
	}
	if err != nil {
		return nil, err
	}
	return r.concludeRun(ctx, run, p, resp, outcomes)
}

// Callbacks accepts what agents post while they work on a task.
func (r *Router) Callbacks() *execution.Callbacks { return r.callbacks }

// History returns the service through which callers access stored requests.
func (r *Router) History() *history.Service { return r.history }
