package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/decisionlog"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/router/plan"
)

// acceptRequest validates and masks a request with the current view.
func (r *Router) acceptRequest(ctx context.Context, req *contract.Request, caller *contract.Caller) (*requestRun, error) {
	view := r.view.Load()
	if view == nil {
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: "the registry is not loaded yet"}
	}
	timings := decisionlog.StartTimings(r.cfg.Now)
	request, err := r.acceptor.Accept(ctx, view.Catalogue, view.Lexical, req, caller)
	if err != nil {
		return nil, err
	}
	timings.EndStage("mask")
	return &requestRun{Request: request, view: view, current: &r.view, timings: timings}, nil
}

// classifyRequest returns the pinned classification, or else the classifier's proposal,
// with the domains that the registry implies.
func (r *Router) classifyRequest(ctx context.Context, run *requestRun) contract.Classification {
	defer run.timings.EndStage("classify")
	ctx, span := telemetry.StartSpan(ctx, "classify")
	defer span.End()
	var c contract.Classification
	if run.Pinned != nil {
		c = run.Pinned.Current()
	} else {
		c = r.classifier.Classify(ctx, run.classifierInput())
	}
	classifier.ImplyDomains(run.view.Catalogue, &c)
	span.SetString(telemetry.AttrSource, string(c.Source))
	span.SetString(telemetry.AttrReason, c.Reason)
	span.SetString(telemetry.AttrIntent, c.Intent)
	return c
}

// makePlan decides which agents execute the request.
func (r *Router) makePlan(ctx context.Context, run *requestRun, c contract.Classification) *plan.Plan {
	defer run.timings.EndStage("match")
	_, span := telemetry.StartSpan(ctx, "match")
	defer span.End()
	in := run.planInput(run.view, c)
	in.Live, in.AlreadyAsked, in.DecisionID = run.liveState(), run.AlreadyAsked, r.cfg.NewID()
	run.planned = run.view
	p := plan.New(in)
	span.SetInt(telemetry.AttrParts, len(p.Parts))
	span.SetString(telemetry.AttrReason, p.Reason)
	return p
}

// planInput returns the request as the matcher sees it, with the registry of the view.
func (run *requestRun) planInput(v *View, c contract.Classification) *plan.Input {
	return &plan.Input{
		Catalogue: v.Catalogue, FleetRevision: v.Fleet.Revision, Index: v.Index, Caller: run.Caller, Prompt: run.Prompt, PromptBytes: len(run.Content.Prompt),
		OnlyAgent: run.OnlyAgent, DataClasses: run.DataClasses, InputClasses: run.inputClasses(v), Classification: c, Now: run.timings.LastEnd(),
	}
}

// inputClasses returns the kinds of data in the inputs, if an agent of the view limits
// them.
func (run *requestRun) inputClasses(v *View) []string {
	if len(run.Content.Inputs) == 0 || !v.Index.LimitsDataClasses() {
		return nil
	}
	return run.Masking.KindsOfInputs(run.Content.Inputs)
}

// addEvidence lists the evidence for the classification in the decision, if the
// caller asked for it, or if no agent serves the request: then the decision needs an
// explanation most, and there is time for it.
func (run *requestRun) addEvidence(p *plan.Plan) {
	if run.Options.Explain || p.Reason != "" {
		in := run.classifierInput()
		p.Decision.Classification.Evidence = classifier.ListEvidence(&in, &p.Decision.Classification)
	}
}

// askCaller asks the caller which reading is meant, and stores the options.
func (r *Router) askCaller(ctx context.Context, run *requestRun, p *plan.Plan, resp *contract.Response) {
	resp.Status = contract.StatusClarify
	resp.Data.Mode = contract.DataClarification
	resp.Data.Because = p.Reason
	resp.Data.Question = fallback.Question(p.Reason, run.languageSource())
	resp.Data.Options = p.Options
	if !run.isDryRun() {
		r.questions.Store(ctx, run.RequestID, run.Caller, p.Options)
	}
}

// languageSource returns what determines the language of texts for the caller.
func (run *requestRun) languageSource() *fallback.LanguageSource {
	return &fallback.LanguageSource{
		Configured: run.view.Catalogue.Fallback.Language, Locale: run.Locale, Prompt: run.Prompt, Turns: run.Turns,
	}
}

// applyFallback answers a request without an eligible agent.
func (r *Router) applyFallback(ctx context.Context, run *requestRun, p *plan.Plan, resp *contract.Response) error {
	defer run.timings.EndStage("fallback")
	ctx, span := telemetry.StartSpan(ctx, "fallback")
	defer span.End()
	return r.fallback.Answer(ctx, &fallbackpolicy.Request{
		Request: run.Request, Catalogue: run.view.Catalogue, Lexical: run.view.Lexical,
		Reason: p.Reason, Async: run.async, Filter: r.view.filter(run.Caller), Serves: run.serves,
	}, resp)
}

// serves reports whether an agent would get the text as a request like this one. Only
// the lexical classifier is used, and all agents count as available.
func (run *requestRun) serves(text string) bool {
	in := run.classifierInput()
	in.Prompt, in.Previous = text, nil
	c := classifier.ClassifyLexically(&in)
	classifier.ImplyDomains(run.view.Catalogue, &c)
	p := plan.New(&plan.Input{
		Catalogue: run.view.Catalogue, Index: run.view.Index, Caller: run.Caller,
		Prompt: text, PromptBytes: len(text), OnlyAgent: run.OnlyAgent, Classification: c, Now: run.timings.LastEnd(),
	})
	return p.Reason == "" && len(p.Options) == 0 && len(p.Omitted) == 0
}

// executePlan makes the decision durable, and then runs the plan. The tasks are made while
// the record is being written.
func (r *Router) executePlan(ctx context.Context, run *requestRun, p *plan.Plan) ([]plan.Outcome, error) {
	defer run.timings.EndStage("dispatch")
	exec := r.executor.NewExecution(&execution.Run{
		Persistence: run.persistence, Request: run.Request, Registry: &sendCheck{run, p, r.cfg.IsRevoked}, Plan: p, Previous: run.previous, Emit: run.emit,
	})
	err := run.recordDecision(ctx, p, func() { exec.Prepare(ctx) })
	run.timings.EndStage("record")
	switch {
	case err == nil:
		run.emitDecision(&p.Decision)
		return exec.Execute(ctx), nil
	case !run.async && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return r.executor.NoneSent(p, contract.TaskDeadlineExceeded, "the deadline passed before the decision was recorded"), nil
	}
	return nil, err
}

// recordDecision makes the decision durable.
func (run *requestRun) recordDecision(ctx context.Context, p *plan.Plan, meanwhile func()) error {
	ctx, span := telemetry.StartSpan(ctx, "record decision")
	defer span.End()
	return run.recorder.RecordDecision(ctx, p, meanwhile)
}

// recordOutcome makes the response durable, and returns the one that counts.
func (run *requestRun) recordOutcome(ctx context.Context, resp *contract.Response) (*contract.Response, error) {
	ctx, span := telemetry.StartSpan(ctx, "record outcome")
	defer span.End()
	return run.recorder.RecordOutcome(ctx, resp)
}
