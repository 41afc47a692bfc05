package router

import (
	"context"
	"log/slog"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// record writes the one decision line of a request (003 §7) and counts it. A
// dry run counts nothing and is logged at debug level only. No prompt text.
func (r *Router) record(ctx context.Context, j *job, resp *contract.Response) {
	if resp.Decision == nil { // it ended before there was one
		r.cfg.Metrics.Request(string(resp.Status), j.clock.elapsed())
		r.cfg.Logger.InfoContext(ctx, "request ended before a decision", "request_id", resp.RequestID, "status", string(resp.Status))
		return
	}
	c := j.clock
	level := slog.LevelInfo
	if j.dryRun() {
		level = slog.LevelDebug
	} else {
		r.count(resp, c)
	}
	if !r.cfg.Logger.Enabled(ctx, level) {
		return
	}
	d := resp.Decision
	fallbackUsed := ""
	if d.FallbackUsed != nil {
		fallbackUsed = *d.FallbackUsed
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
		slog.Any("candidates", candidateIDs(d)),
		slog.Any("chosen", d.Chosen),
		slog.String("fallback_used", fallbackUsed),
		slog.String("registry_version", d.RegistryVersion),
		slog.Float64("total_ms", millis(c.elapsed())),
	)
}

// count books the answer and what led to it; what was refused the edge counts.
func (r *Router) count(resp *contract.Response, c *clock) {
	m := r.cfg.Metrics
	m.Request(string(resp.Status), c.elapsed())
	m.Classify(string(resp.Decision.Classification.Source), c.duration("classify"))
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
		t := &resp.Tasks[i]
		for k := range t.FailedOver {
			m.TaskDone(string(t.FailedOver[k].Status), fromMillis(t.FailedOver[k].LatencyMS))
		}
		m.TaskDone(string(t.Status), fromMillis(t.LatencyMS))
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

func candidateIDs(d *contract.Decision) []string {
	ids := make([]string, len(d.Candidates))
	for i := range d.Candidates {
		ids[i] = d.Candidates[i].AgentID
	}
	return ids
}
