package contract

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Task is the task that an agent receives.
type Task struct {
	TaskID       string   `json:"task_id"`
	RequestID    string   `json:"request_id"`
	TraceID      string   `json:"trace_id"` // 32 hex digits (W3C Trace Context)
	Intent       string   `json:"intent"`   // Unknown if Alternatives are set
	Domains      []string `json:"domains"`
	SubtaskTitle string   `json:"subtask_title"`
	Confidence   float64  `json:"confidence"` // that the task is one for this agent
	// Alternatives are the intents that the request may mean, likeliest first, if
	// the words of the request do not decide between them. The agent declares all
	// of them.
	Alternatives []IntentScore              `json:"alternatives,omitempty"`
	Locale       string                     `json:"locale,omitempty"`     // BCP 47, of the request
	SessionID    string                     `json:"session_id,omitempty"` // as the caller named it; other callers may use the same
	History      []Turn                     `json:"history,omitempty"`    // turns before the prompt, oldest first
	Inputs       map[string]json.RawMessage `json:"inputs"`               // "prompt" and the request's inputs
	Deadline     time.Time                  `json:"deadline"`
	Attempt      int                        `json:"attempt"` // from 1
	// Callback is the destination of asynchronous results and of progress. It
	// is absent if the router's public address is not known.
	Callback *Callback `json:"callback,omitempty"`
}

// Callback is where an agent posts its result later, and its progress: to the
// same address with "progress" instead of "result".
type Callback struct {
	URL   string `json:"url"`   // …/api/v1/tasks/{task_id}/result
	Token string `json:"token"` // bearer token, valid for this task only
}

// TaskGrant is the permission in a callback token: to report on one task.
type TaskGrant struct {
	AgentID   string
	RequestID string
	TaskID    string
	Expires   time.Time
}

// Progress is a progress report of an agent.
type Progress struct {
	Message string                     `json:"message" validate:"required,max=1000"`
	Percent *float64                   `json:"percent,omitempty" validate:"omitempty,min=0,max=100"`
	Data    map[string]json.RawMessage `json:"data,omitempty"`
}

// ResultStatus is the status of an agent's result.
type ResultStatus string

// Statuses of a Result. Partial is terminal: no more will follow.
const (
	ResultSuccess ResultStatus = "success"
	ResultFailure ResultStatus = "failure"
	ResultPartial ResultStatus = "partial"
)

// Result is the result of an agent. TaskID is optional in a synchronous reply;
// if set, it must be the task's.
type Result struct {
	TaskID       string                     `json:"task_id,omitempty"`
	Status       ResultStatus               `json:"status" validate:"required,oneof=success failure partial"`
	Data         map[string]json.RawMessage `json:"data,omitempty"`
	Logs         []string                   `json:"logs,omitempty"`
	Metrics      map[string]float64         `json:"metrics,omitempty"`
	Explanations []string                   `json:"explanations,omitempty"`
}

// Limits of the reported part of a Result. The rest is dropped.
const (
	MaxMetrics    = 50
	MaxMetricName = 64 // bytes
	MaxLogs       = 100
	MaxLogLine    = 500 // bytes
)

// TokensMetric is the name of the metric with the tokens that the agent used.
const TokensMetric = "tokens"

// ReportedMetrics returns the metrics within the limits, the first ones by name.
func (r *Result) ReportedMetrics() map[string]float64 {
	if len(r.Metrics) == 0 {
		return nil
	}
	reported := make(map[string]float64, min(len(r.Metrics), MaxMetrics))
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		if len(reported) < MaxMetrics && len(name) <= MaxMetricName {
			reported[name] = r.Metrics[name]
		}
	}
	return reported
}

// ReportedLogs returns the log lines within the limits, each changed by mask.
func (r *Result) ReportedLogs(mask func(string) string) []string {
	var lines []string
	for _, line := range r.Logs[:min(len(r.Logs), MaxLogs)] {
		line = mask(line)
		if len(line) > MaxLogLine {
			line = strings.ToValidUTF8(line[:MaxLogLine], "") + "…"
		}
		lines = append(lines, line)
	}
	return lines
}

// Text returns the display text of a result: the first of data.answer,
// data.text and data.summary that is a non-empty string, else "".
func (r *Result) Text() string {
	for _, name := range [...]string{"answer", "text", "summary"} {
		var s string
		if raw, ok := r.Data[name]; ok && json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}
