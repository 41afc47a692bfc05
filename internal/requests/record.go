package requests

import (
	"time"

	"github.com/caprouter/caprouter/contract"
)

// recordVersion is the form of a stored record. Members may be added to a form;
// one whose meaning changes makes a new form.
const recordVersion = 1

// State is how far a request has come: one of the states here or, once it has
// ended, a terminal contract.Status.
type State string

// The states of a request that has not ended.
const (
	StateAccepted State = "accepted" // on disk, and nothing else is known of it
	StatePlanned  State = "planned"  // decided: the parts and their agents are on record
	StateRunning  State = "running"  // its tasks may be given out
)

// Terminal reports whether nothing more becomes of the request.
func (s State) Terminal() bool {
	switch contract.Status(s) {
	case contract.StatusCompleted, contract.StatusPartial, contract.StatusFailed, contract.StatusClarify,
		contract.StatusUnsupported, contract.StatusProposed, contract.StatusCancelled:
		return true
	case contract.StatusAccepted, contract.StatusRunning:
	}
	return false
}

// TaskState is how far a task has come.
type TaskState string

// The states of a task.
const (
	TaskSent    TaskState = "sent"    // may have reached its agent
	TaskWaiting TaskState = "waiting" // its agent answered that the result comes later
	TaskDone    TaskState = "done"    // has its one outcome
)

// Record is all there is to know of one request: what was asked, what was
// decided, what was given out, what came back, and whose it is. Its fields may be
// read freely; what moves it on are its methods, each of which changes nothing
// when it returns an error.
type Record struct {
	Version int              `json:"version"`
	ID      string           `json:"id"`
	TraceID string           `json:"trace_id"`
	Caller  contract.Caller  `json:"caller"`
	Request contract.Request `json:"request"` // its RequestID and TraceID are ID and TraceID again

	// What acceptance found out.
	History   []contract.Turn       `json:"history,omitempty"`
	Pinned    *PinnedClassification `json:"settled,omitempty"`
	OnlyAgent string                `json:"only,omitempty"` // the one agent that may be a candidate

	CreatedAt   time.Time `json:"created_at"`
	Deadline    time.Time `json:"deadline"`
	State       State     `json:"state"`
	Owner       string    `json:"owner,omitempty"` // the process that drives it
	Epoch       int       `json:"epoch"`           // how often it was taken over
	TakenOverAt time.Time `json:"taken_at,omitzero"`

	Decision *contract.Decision `json:"decision,omitempty"`
	Omitted  []contract.Omitted `json:"omitted,omitempty"`
	Parts    []Part             `json:"parts,omitempty"`
	Tasks    []Task             `json:"tasks,omitempty"` // in the order they were given out

	Response *contract.Response `json:"response,omitempty"` // set by the end
	EndedAt  time.Time          `json:"ended_at,omitzero"`
}

// PinnedClassification is a classification that was made before, or by the caller's choice.
type PinnedClassification struct {
	Classification contract.Classification `json:"classification"`
	Reason         string                  `json:"reason"`
}

// Part is one task to be: what is asked, and who may do it in which order.
type Part struct {
	Subtask     int                 `json:"subtask"` // index into the classification's subtasks; -1 = the whole request
	Title       string              `json:"title"`
	Intent      string              `json:"intent"`
	Domains     []string            `json:"domains"`
	Agents      []string            `json:"agents"`         // the chosen one, then the standbys
	Unavailable *contract.Candidate `json:"down,omitempty"` // set instead of Agents where only live state keeps agents out
}

// Task is one part given to one agent.
type Task struct {
	ID      string    `json:"id"`
	AgentID string    `json:"agent_id"`
	Part    int       `json:"part"` // index into Record.Parts
	State   TaskState `json:"state"`
	SentAt  time.Time `json:"sent_at"`

	Idempotent bool `json:"idempotent,omitzero"` // so the registry said of the agent when it was sent

	Attempts  int     `json:"attempts"`
	LatencyMS float64 `json:"latency_ms,omitzero"`

	// The outcome of a task that is done: a Result or an Err.
	Result     *contract.Result    `json:"result,omitempty"`
	ResultHash string              `json:"result_hash,omitempty"`
	Err        *contract.TaskError `json:"err,omitempty"`
	Uncertain  bool                `json:"uncertain,omitzero"` // the agent may have done the work: no other gets it
}

// Outcome is what came of a task: a Result or an Err.
type Outcome struct {
	Result    *contract.Result
	Err       *contract.TaskError
	Uncertain bool
	Attempts  int
	LatencyMS float64
}

// task returns the task of that id, nil where there is none.
func (r *Record) task(id string) *Task {
	for i := range r.Tasks {
		if r.Tasks[i].ID == id {
			return &r.Tasks[i]
		}
	}
	return nil
}

// delivered reports whether the agent did what could be done. Its own failure is
// not that: a standby may succeed.
func (t *Task) delivered() bool {
	return t.Result != nil && t.Result.Status != contract.ResultFailure
}
