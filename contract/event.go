package contract

import "time"

// EventType names an event of a request, as the event stream does.
type EventType string

// The events of a request, in their order; tasks may interleave. State stands
// for events that are gone, to a reader who comes late.
const (
	EventDecision     EventType = "decision"
	EventTaskStarted  EventType = "task.started"
	EventTaskProgress EventType = "task.progress"
	EventTaskDone     EventType = "task.done"
	EventFinal        EventType = "final"
	EventState        EventType = "state"
)

// Event is one thing that happened to a request. Which member is set its type
// says.
type Event struct {
	Type      EventType `json:"type"`
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`

	Decision *Decision   `json:"decision,omitempty"` // decision
	Task     *TaskReport `json:"task,omitempty"`     // task.started, task.progress, task.done
	Progress *Progress   `json:"progress,omitempty"` // task.progress
	Response *Response   `json:"response,omitempty"` // final, state
}

// DecisionEntry is one request in the decision log (003 §7).
type DecisionEntry struct {
	At        time.Time    `json:"at"` // of the answer
	RequestID string       `json:"request_id"`
	TraceID   string       `json:"trace_id"`
	Tenant    string       `json:"tenant,omitempty"`
	Subject   string       `json:"subject"`
	Status    Status       `json:"status"`
	Prompt    string       `json:"prompt,omitempty"` // masked
	Decision  *Decision    `json:"decision"`         // null where it was erased
	Tasks     []TaskReport `json:"tasks"`
	Omitted   []Omitted    `json:"omitted"`
	Erased    bool         `json:"erased,omitzero"`
}

// DecisionQuery selects from the decision log; zero members select all.
type DecisionQuery struct {
	Since   time.Time
	Agent   string // chosen, or tried in its place
	Outcome Status
	Limit   int    // 0 = 100
	Cursor  string // of the page before
}

// DecisionPage is the answer of GET /api/v1/decisions: oldest first. NextCursor
// is always there: with nothing more to read it is where what comes next will
// stand.
type DecisionPage struct {
	Decisions  []DecisionEntry `json:"decisions"`
	NextCursor string          `json:"next_cursor"`
}
