package router

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/router/plan"
)

// Router runs requests through the pipeline of the package comment. It is safe for
// concurrent use; its View may be swapped while requests run.
type Router struct {
	cfg        Config
	view       atomic.Pointer[View]
	classifier Classifier
	acceptor   *acceptor
	fallbacks  *fallbackStage
	reporter   *reporter
	sessions   *session.Store
	questions  *session.Questions
	keys       keyReserver
	inflight   *inflight.Table
	journal    *history.Journal
	history    *history.Service
	callbacks  *execution.Callbacks
	executor   *execution.Executor
	async      *asyncrun.Runner
}

// Handle routes one request and waits for the response.
//
// An error means that the request was not accepted; it is a *contract.Error if the
// caller can act on it. Once a request is accepted, every end of it is a Response,
// even if no agent is eligible or all of them fail.
func (r *Router) Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	resp, err := r.handleSync(ctx, req, caller, discardEvents)
	return r.visibilityFilter(caller).Response(resp), err
}

// Submit stores a request durably, and then routes it in the background.
func (r *Router) Submit(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	resp, err := r.submitAsync(ctx, req, caller)
	return r.visibilityFilter(caller).Response(resp), err
}

// Classify returns the proposal of the classifier for a request, and decides
// nothing.
func (r *Router) Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error) {
	ctx, cancel := context.WithTimeout(ctx, r.acceptor.requestTimeout(req))
	defer cancel()
	run, err := r.acceptor.acceptRequest(ctx, r.view.Load(), req, caller)
	if err != nil {
		return nil, err
	}
	proposed := r.classifier.Classify(ctx, run.classifierInput())
	visible := r.visibilityFilter(caller).Classification(&proposed)
	return &visible, nil
}

// runPipeline runs the pipeline for an accepted request, synchronous or asynchronous. A
// resumed request may have a plan already.
func (r *Router) runPipeline(ctx context.Context, run *requestRun) (*contract.Response, error) {
	p := run.restored
	if p == nil {
		classification := r.classifyRequest(ctx, run)
		p = r.makePlan(run, classification)
	}
	run.inflight.SetDecision(&p.Decision)

	resp := p.Response(run.Request.Request)
	var outcomes []plan.Outcome
	var err error
	switch {
	case len(p.Options) > 0:
		r.askCaller(ctx, run, p, resp)
	case p.Reason != "":
		err = r.fallbacks.answerUnmet(ctx, run, p, resp, r.visibilityFilter(run.Caller))
	case run.isDryRun():
		resp.Status = contract.StatusAccepted
	default:
		outcomes, err = r.executePlan(ctx, run, p)
		p.Aggregate(resp, outcomes)
	}
	if err != nil {
		return nil, err
	}
	return r.concludeRun(ctx, run, p, resp, outcomes)
}

// classifyRequest returns the pinned classification, or else the classifier's proposal.
func (r *Router) classifyRequest(ctx context.Context, run *requestRun) contract.Classification {
	defer run.timings.endStage("classify")
	if run.Pinned != nil {
		return run.Pinned.Current()
	}
	return r.classifier.Classify(ctx, run.classifierInput())
}

// makePlan decides which agents execute the request.
func (r *Router) makePlan(run *requestRun, c contract.Classification) *plan.Plan {
	defer run.timings.endStage("match")
	return plan.New(&plan.Input{
		Catalogue: run.view.Catalogue, Index: run.view.Index, Fleet: run.view.Fleet, Live: run.liveState(),
		Caller: run.Caller, Prompt: run.Prompt, PromptBytes: len(run.Content.Prompt), OnlyAgent: run.OnlyAgent,
		DataClasses: run.Masking.Kinds(), AlreadyAsked: run.AlreadyAsked,
		Classification: c, DecisionID: r.cfg.NewID(), Now: run.timings.last,
	})
}

// askCaller asks the caller which reading is meant, and stores the options.
func (r *Router) askCaller(ctx context.Context, run *requestRun, p *plan.Plan, resp *contract.Response) {
	resp.Status = contract.StatusClarify
	resp.Data.Mode = contract.DataClarification
	resp.Data.Because = p.Reason
	resp.Data.Question = fallback.Question(p.Reason, run.view.Catalogue.Fallback.Language, run.Locale, run.Prompt)
	resp.Data.Options = p.Options
	if !run.isDryRun() {
		r.questions.Store(ctx, run.RequestID, run.Caller, p.Options)
	}
}

// executePlan makes the decision durable, and then runs the plan.
func (r *Router) executePlan(ctx context.Context, run *requestRun, p *plan.Plan) ([]plan.Outcome, error) {
	defer run.timings.endStage("dispatch")
	err := run.recorder.RecordDecision(ctx, p)
	run.timings.endStage("record")
	switch {
	case err == nil:
		run.emitDecision(&p.Decision)
		return r.executor.Execute(ctx, &execution.Run{
			Mode: run.mode, Request: run.Request, Fleet: run.view.Fleet, Plan: p, Previous: run.previous, Emit: run.emit,
		}), nil
	case !run.async && errors.Is(ctx.Err(), context.DeadlineExceeded):
		outcomes := make([]plan.Outcome, len(p.Parts))
		for i := range p.Parts {
			outcomes[i] = r.executor.NotSent(&p.Parts[i], contract.TaskDeadlineExceeded, "the deadline passed before the decision was recorded")
		}
		return outcomes, nil
	}
	return nil, err
}
