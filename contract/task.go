package contract

import (
	"encoding/json"
	"time"
)

// Task is what an agent receives (003 §4).
type Task struct {
	TaskID       string                     `json:"task_id"`
	RequestID    string                     `json:"request_id"`
	TraceID      string                     `json:"trace_id"` // 32 hex digits (W3C Trace Context)
	Intent       string                     `json:"intent"`
	Domains      []string                   `json:"domains"`
	SubtaskTitle string                     `json:"subtask_title"`
	Inputs       map[string]json.RawMessage `json:"inputs"` // "prompt" and the request's inputs
	Deadline     time.Time                  `json:"deadline"`
	Attempt      int                        `json:"attempt"` // from 1
	// Callback takes the Result of an agent that answers 202, and the progress
	// of any. Absent where no address is known that agents reach the router at.
	Callback *Callback `json:"callback,omitempty"`
}

// Callback is where an agent sends what comes later: the Result to URL, progress
// to the same address with "progress" in the place of "result".
type Callback struct {
	URL   string `json:"url"`   // …/api/v1/tasks/{task_id}/result
	Token string `json:"token"` // Bearer, for this task alone
}

// TaskGrant is what a callback token lets its bearer do: speak for one task.
type TaskGrant struct {
	AgentID   string
	RequestID string
	TaskID    string
	Expires   time.Time
}

// Progress is what an agent says of its task while it works on it.
type Progress struct {
	Message string                     `json:"message" validate:"required,max=1000"`
	Percent *float64                   `json:"percent,omitempty" validate:"omitempty,min=0,max=100"`
	Data    map[string]json.RawMessage `json:"data,omitempty"`
}

// ResultStatus is an agent's verdict on its task.
type ResultStatus string

// The statuses of a Result. Partial is terminal: what could be done.
const (
	ResultSuccess ResultStatus = "success"
	ResultFailure ResultStatus = "failure"
	ResultPartial ResultStatus = "partial"
)

// Result is what an agent returns (003 §4). TaskID is optional on a direct
// reply; when there it must be the task's.
type Result struct {
	TaskID       string                     `json:"task_id,omitempty"`
	Status       ResultStatus               `json:"status" validate:"required,oneof=success failure partial"`
	Data         map[string]json.RawMessage `json:"data,omitempty"`
	Logs         []string                   `json:"logs,omitempty"`
	Metrics      map[string]float64         `json:"metrics,omitempty"`
	Explanations []string                   `json:"explanations,omitempty"`
}

// Text returns the part of a Result meant for people: data.answer, else
// data.text, else data.summary, where one is a string; else "".
func (r *Result) Text() string {
	for _, name := range [...]string{"answer", "text", "summary"} {
		var s string
		if raw, ok := r.Data[name]; ok && json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}
