package router

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/router/plan"
)

// conclude ends a request with its one terminal state: it records the response,
// updates the session, counts and logs. If the request ended otherwise before, for
// example because it was cancelled, that end counts.
func (r *Router) conclude(
	ctx context.Context, run *requestRun, p *plan.Plan, resp *contract.Response, outcomes []plan.Outcome,
) (*contract.Response, error) {
	if errors.Is(context.Cause(ctx), dispatch.ErrHandedOver) {
		return nil, dispatch.ErrHandedOver
	}
	run.timings.finish(resp.Decision)
	run.emitDecision(resp.Decision)
	resp, err := run.recorder.RecordOutcome(ctx, resp, len(outcomes) > 0)
	if err != nil {
		return nil, err
	}
	r.updateSession(ctx, run, p, resp, outcomes)
	r.report(ctx, resp, run.timings, run.isDryRun())
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
			AgentID: outcomes[i].Report.AgentID, Intent: p.Parts[i].Intent, Domains: p.Parts[i].Domains, Result: outcomes[i].Result,
		}
	}
	ctx, cancel := run.detach(ctx)
	defer cancel()
	if err := r.sessions.Update(ctx, key, func(s session.Session) session.Session { return s.After(ended) }); err != nil {
		r.cfg.Logger.WarnContext(ctx, "cannot store session", "request_id", resp.RequestID, "err", err)
	}
}

// report counts a response and writes the one decision line of the log, which
// contains no prompt text. A dry run is not counted, and is logged at debug level.
func (r *Router) report(ctx context.Context, resp *contract.Response, t *timings, dryRun bool) {
	if resp.Decision == nil {
		r.cfg.Metrics.Request(string(resp.Status), t.elapsed())
		r.cfg.Logger.InfoContext(ctx, "request ended before a decision", "request_id", resp.RequestID, "status", string(resp.Status))
		return
	}
	level := slog.LevelInfo
	if dryRun {
		level = slog.LevelDebug
	} else {
		r.count(resp, t)
	}
	if !r.cfg.Logger.Enabled(ctx, level) {
		return
	}
	d := resp.Decision
	fallbackUsed := ""
	if d.FallbackUsed != nil {
		fallbackUsed = *d.FallbackUsed
	}
	candidates := make([]string, len(d.Candidates))
	for i := range d.Candidates {
		candidates[i] = d.Candidates[i].AgentID
	}
	r.cfg.Logger.LogAttrs(ctx, level, "decision",
		slog.String("request_id", resp.RequestID),
		slog.String("decision_id", d.DecisionID),
		slog.String("trace_id", resp.TraceID),
		slog.String("status", string(resp.Status)),
		slog.String("clf.intent", d.Classification.Intent),
		slog.Any("clf.domains", d.Classification.Domains),
		slog.Float64("clf.confidence", d.Classification.Confidence),
		slog.String("clf.source", string(d.Classification.Source)),
		slog.String("clf.reason", d.Classification.Reason),
		slog.Any("candidates", candidates),
		slog.Any("chosen", d.Chosen),
		slog.String("fallback_used", fallbackUsed),
		slog.String("registry_version", d.RegistryVersion),
		slog.Float64("total_ms", milliseconds(t.elapsed())),
	)
}

// count adds a response to the metrics. Rejected requests are counted by the HTTP
// layer.
func (r *Router) count(resp *contract.Response, t *timings) {
	m := r.cfg.Metrics
	m.Request(string(resp.Status), t.elapsed())
	m.Classify(string(resp.Decision.Classification.Source), t.stage("classify"))
	if reason := resp.Decision.Classification.Reason; strings.HasPrefix(reason, "llm_") {
		m.StandIn(reason)
	}
	if c := resp.Decision.Classification.Cascade; c != nil {
		m.Cascade(cascadeOutcome(c), c.Confidence)
	}
	if f := resp.Decision.FallbackUsed; f != nil {
		m.Fallback(*f)
	}
	for i := range resp.Tasks {
		task := &resp.Tasks[i]
		for k := range task.FailedOver {
			m.TaskDone(string(task.FailedOver[k].Status), duration(task.FailedOver[k].LatencyMS))
		}
		m.TaskDone(string(task.Status), duration(task.LatencyMS))
	}
}

func cascadeOutcome(c *contract.Cascade) string {
	switch {
	case c.ModelSkipped:
		return telemetry.CascadeSpared
	case c.Agrees == nil:
		return telemetry.CascadeNoAnswer
	case *c.Agrees:
		return telemetry.CascadeAgreed
	}
	return telemetry.CascadeDisagreed
}
