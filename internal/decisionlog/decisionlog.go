// Package decisionlog measures the stages of requests, and writes each decision to
// the log and to the metrics. It decides nothing.
//
//	timings := decisionlog.StartTimings(time.Now())
//	…
//	timings.EndStage("match")
//	…
//	timings.FinishTotal(resp.Decision)
//	reporter.ReportResponse(ctx, resp, timings, dryRun)
package decisionlog

import (
	"context"
	"log/slog"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// Reporter counts and logs responses. It is safe for concurrent use.
type Reporter struct {
	logger  *slog.Logger
	metrics *telemetry.Metrics
}

// NewReporter returns a Reporter.
func NewReporter(logger *slog.Logger, metrics *telemetry.Metrics) *Reporter {
	return &Reporter{logger: logger, metrics: metrics}
}

// ReportResponse counts a response and writes the one decision line of the log, which
// contains no prompt text. A dry run is not counted, and is logged at debug level.
func (r *Reporter) ReportResponse(ctx context.Context, resp *contract.Response, t *Timings, dryRun bool) {
	if resp.Decision == nil {
		r.metrics.RecordRequest(string(resp.Status), t.elapsedTime())
		r.logger.InfoContext(ctx, "request ended before a decision", "request_id", resp.RequestID, "status", string(resp.Status))
		return
	}
	level := slog.LevelInfo
	if dryRun {
		level = slog.LevelDebug
	} else {
		r.countResponse(resp, t)
	}
	if !r.logger.Enabled(ctx, level) {
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
	attributes := []slog.Attr{
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
		slog.Float64("total_ms", contract.ToMilliseconds(t.elapsedTime())),
	}
	if failed := failedTasks(resp.Tasks); len(failed) > 0 {
		attributes = append(attributes, slog.Any("failed", failed))
	}
	r.logger.LogAttrs(ctx, level, "decision", attributes...)
}

// failedTasks returns AGENT:CODE of each task without a result, also of those that another agent
// took over.
func failedTasks(tasks []contract.TaskReport) []string {
	var failed []string
	add := func(agentID string, e *contract.TaskError) {
		if e != nil {
			failed = append(failed, agentID+":"+string(e.Code))
		}
	}
	for i := range tasks {
		for k := range tasks[i].FailedOver {
			add(tasks[i].FailedOver[k].AgentID, tasks[i].FailedOver[k].Error)
		}
		add(tasks[i].AgentID, tasks[i].Error)
	}
	return failed
}

// countResponse adds a response to the metrics. Rejected requests are counted by the HTTP
// layer.
func (r *Reporter) countResponse(resp *contract.Response, t *Timings) {
	m := r.metrics
	m.RecordRequest(string(resp.Status), t.elapsedTime())
	m.RecordClassification(string(resp.Decision.Classification.Source), t.stageDuration("classify"))
	if reason := resp.Decision.Classification.Reason; strings.HasPrefix(reason, "llm_") {
		m.RecordModelFailure(reason)
	}
	if c := resp.Decision.Classification.Cascade; c != nil {
		m.RecordCascade(cascadeOutcome(c), c.Confidence)
	}
	if f := resp.Decision.FallbackUsed; f != nil {
		m.RecordFallback(*f)
	}
	for i := range resp.Tasks {
		task := &resp.Tasks[i]
		for k := range task.FailedOver {
			m.RecordTask(string(task.FailedOver[k].Status), fromMilliseconds(task.FailedOver[k].LatencyMS))
		}
		m.RecordTask(string(task.Status), fromMilliseconds(task.LatencyMS))
		m.RecordAgentTokens(string(task.Status), task.Metrics[contract.TokensMetric])
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
