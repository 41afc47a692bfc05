package contract

import "time"

// EventType is the type of a request event.
type EventType string

// Event types of a request in their order; tasks may interleave. If earlier
// events are no longer stored, a state event replaces them.
const (
	EventDecision     EventType = "decision"
	EventTaskStarted  EventType = "task.started"
	EventTaskProgress EventType = "task.progress"
	EventTaskDone     EventType = "task.done"
	EventFinal        EventType = "final"
	EventState        EventType = "state"
)

// Event is an event of a request. Its type determines which member is set.
type Event struct {
	Type      EventType `json:"type"`
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`

	Decision *Decision   `json:"decision,omitempty"` // decision
	Task     *TaskReport `json:"task,omitempty"`     // task.started, task.progress, task.done
	Progress *Progress   `json:"progress,omitempty"` // task.progress
	Response *Response   `json:"response,omitempty"` // final, state
}

// DecisionEntry is one request in the decision log.
type DecisionEntry struct {
	At        time.Time    `json:"at"` // time of the answer
	RequestID string       `json:"request_id"`
	TraceID   string       `json:"trace_id"`
	Tenant    string       `json:"tenant,omitempty"`
	Subject   string       `json:"subject"`
	Status    Status       `json:"status"`
	Prompt    string       `json:"prompt,omitempty"` // masked
	Decision  *Decision    `json:"decision"`         // null if it was erased
	Tasks     []TaskReport `json:"tasks"`
	Omitted   []Omitted    `json:"omitted"`
	Feedback  []Feedback   `json:"feedback,omitempty"` // of the caller's tenant
	Erased    bool         `json:"erased,omitzero"`
}

// DecisionQuery filters the decision log. Zero members select all.
type DecisionQuery struct {
	Since   time.Time
	Agent   string // chosen, or tried in failover
	Outcome Status

	// These compare what the caller may see of the decision, so that no filter
	// reveals a hidden label. An entry whose decision was erased passes none.
	Intent   string
	Source   Source
	Below    float64 // confidence is lower
	Fallback string  // policy that answered, or AnyFallback
	Feedback Verdict // there is feedback with this verdict

	RequestID string
	Limit     int    // 0 = 100
	Cursor    string // of the previous page
}

// AnyFallback selects decisions that a fallback policy answered.
const AnyFallback = "true"

// DecisionPage is the response of GET /api/v1/decisions, oldest first.
// NextCursor is always set: on the last page it is the position of future
// entries.
type DecisionPage struct {
	Decisions  []DecisionEntry `json:"decisions"`
	NextCursor string          `json:"next_cursor"`
}
