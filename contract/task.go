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
	Lease     int // number of the lease with which the agent pulled the task; 0 = the task was sent
	Expires   time.Time
}

// LeaseRequest is the body of POST /api/v1/agents/{id}/lease, with which an agent pulls
// its next task.
type LeaseRequest struct {
	Instance  string `json:"instance,omitempty" validate:"max=64"`                     // "" = DefaultInstance
	WaitS     int    `json:"wait_s,omitzero" validate:"min=0,max=30"`                  // how long to wait for a task; 0 = not
	LeaseTTLS int    `json:"lease_ttl_s,omitzero" validate:"omitempty,min=2,max=3600"` // of the task; 0 = DefaultTaskLeaseS
}

// DefaultTaskLeaseS is the default time in seconds after which a task that was pulled is
// given up, unless its agent renews the lease.
const DefaultTaskLeaseS = 30

// MaxTaskLeases is how often a task is given to an idempotent agent whose leases expire.
const MaxTaskLeases = 5

// LeasedTask is a task that its agent has pulled.
type LeasedTask struct {
	Task  Task      `json:"task"`
	Lease TaskLease `json:"lease"`
	// Token is the token that an agent receives with a task that is sent to it: it names
	// the caller.
	Token string `json:"token"`
}

// TaskLease is the state of a lease. The agent renews it with progress, or with a
// heartbeat of the task, at least once in HeartbeatS.
type TaskLease struct {
	TaskID     string     `json:"task_id"`
	State      LeaseState `json:"state"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"` // absent unless the state is leased
	HeartbeatS float64    `json:"heartbeat_s,omitzero"` // likewise
}

// LeaseState is the state of a lease.
type LeaseState string

// The states of a lease.
const (
	LeaseHeld LeaseState = "leased"
	// LeaseCancelled means that the result is not needed any more: the request was
	// cancelled, it has ended, or another worker has the task. The agent should stop.
	LeaseCancelled LeaseState = "cancelled"
)

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
