package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/router/plan"
)

// concludeRun ends a request with its one terminal state: it records the response,
// updates the session, counts and logs. If the request ended otherwise before, for
// example because it was cancelled, that end counts.
func (r *Router) concludeRun(
	ctx context.Context, run *requestRun, p *plan.Plan, resp *contract.Response, outcomes []plan.Outcome,
) (*contract.Response, error) {
	if errors.Is(context.Cause(ctx), dispatch.ErrHandedOver) {
		return nil, dispatch.ErrHandedOver
	}
	run.timings.FinishTotal(resp.Decision)
	run.emitDecision(resp.Decision)
	resp, err := run.recordOutcome(ctx, resp)
	if err != nil {
		return nil, err
	}
	r.updateSession(ctx, run, p, resp, outcomes)
	r.reporter.ReportResponse(ctx, resp, run.timings, run.isDryRun())
	if !run.Options.Logs {
		resp = resp.WithoutLogs()
	}
	return resp, nil
}

// updateSession stores what the next request of the session needs.
func (r *Router) updateSession(
	ctx context.Context, run *requestRun, p *plan.Plan, resp *contract.Response, outcomes []plan.Outcome,
) {
	key := run.SessionKey()
	if key == "" || run.isDryRun() {
		return
	}
	ended := &session.Ended{
		RequestID: resp.RequestID, Prompt: run.Prompt, Response: resp, MaskText: run.Masking.MaskText, Pinned: run.Pinned,
		Tasks: make([]session.Task, len(outcomes)),
	}
	if len(p.Parts) > 0 {
		ended.Classification = &p.Decision.Classification
	}
	for i := range outcomes {
		ended.Tasks[i] = session.Task{
			AgentID: outcomes[i].Report.AgentID, Intent: p.Parts[i].Intent, Domains: p.Parts[i].Domains,
			Confidence: p.Parts[i].Confidence, Alternatives: p.Parts[i].Alternatives, Result: outcomes[i].Result,
		}
	}
	ctx, cancel := run.detachedContext(ctx)
	defer cancel()
	if err := r.sessions.Update(ctx, run.Caller, key, func(s session.Session) session.Session { return s.After(ended) }); err != nil {
		r.cfg.Logger.WarnContext(ctx, "cannot store session", "request_id", resp.RequestID, "error", err)
	}
}
