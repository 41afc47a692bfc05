package requests

import (
	"time"

	"github.com/caprouter/caprouter/contract"
)

// recordVersion is the version of the stored format. Added members do not change it;
// a member that changes its meaning does.
const recordVersion = 1

// State is one of the states below or, after the end, a terminal contract.Status.
type State string

// The states of a request that has not ended.
const (
	StateAccepted State = "accepted" // stored, not classified yet
	StatePlanned  State = "planned"  // the decision, the parts and their agents are stored
	StateRunning  State = "running"  // its tasks may be sent
)

// Terminal reports whether the request has ended.
func (s State) Terminal() bool {
	switch contract.Status(s) {
	case contract.StatusCompleted, contract.StatusPartial, contract.StatusFailed, contract.StatusClarify,
		contract.StatusUnsupported, contract.StatusProposed, contract.StatusCancelled:
		return true
	case contract.StatusAccepted, contract.StatusRunning:
	}
	return false
}

// TaskState is the state of a task.
type TaskState string

// The states of a task.
const (
	TaskSent    TaskState = "sent"    // may have reached its agent
	TaskWaiting TaskState = "waiting" // its agent answered 202, or pulls it: the result comes by callback
	TaskDone    TaskState = "done"    // has an outcome
)

// Record is the state of one request: the request itself, the decision, the tasks
// with their results, and the owning process. One goroutine owns a record. Fields may
// be read directly. The transitions, which are methods, change them; one that returns an
// error leaves the record as it is.
type Record struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	TraceID string `json:"trace_id"`
	// Traceparent is the span of the process that accepted the request; "" = it records no
	// traces.
	Traceparent string           `json:"traceparent,omitempty"`
	Caller      contract.Caller  `json:"caller"`
	Request     contract.Request `json:"request"` // its RequestID and TraceID are ID and TraceID again

	// Set when the request is accepted.
	History   []contract.Turn          `json:"history,omitempty"`
	Pinned    *PinnedClassification    `json:"settled,omitempty"`
	Previous  *contract.Classification `json:"previous,omitempty"` // of the latest user turn of History; nil if it was not dispatched
	OnlyAgent string                   `json:"only,omitempty"`     // the only agent that may be a candidate; "" = any
	KeyName   string                   `json:"key,omitempty"`      // the store's name of the idempotency key; "" = none

	CreatedAt   time.Time `json:"created_at"`
	Deadline    time.Time `json:"deadline"`
	State       State     `json:"state"`
	Owner       string    `json:"owner,omitempty"` // the process that executes it
	Epoch       int       `json:"epoch"`           // number of changes of the owner
	TakenOverAt time.Time `json:"taken_at,omitzero"`

	Decision *contract.Decision `json:"decision,omitempty"`
	Omitted  []contract.Omitted `json:"omitted,omitempty"`
	Parts    []Part             `json:"parts,omitempty"`
	Tasks    []Task             `json:"tasks,omitempty"` // in the order they were sent

	Response *contract.Response `json:"response,omitempty"` // set by the end
	EndedAt  time.Time          `json:"ended_at,omitzero"`
}

// PinnedClassification replaces classifying: it comes from the session, or the caller
// chose it.
type PinnedClassification struct {
	Classification contract.Classification `json:"classification"`
	Reason         string                  `json:"reason"`
}

// Part is one planned task: a subtask, and its agents in order of preference.
type Part struct {
	Subtask    int      `json:"subtask"` // index into the classification's subtasks; -1 = the whole request
	Title      string   `json:"title"`
	Intent     string   `json:"intent"`
	Domains    []string `json:"domains"`
	Confidence float64  `json:"confidence,omitzero"`
	// Alternatives are the tied intents, likeliest first; empty without a tie.
	Alternatives []contract.IntentScore `json:"alternatives,omitempty"`
	Agents       []string               `json:"agents"`         // the chosen agent, then the standbys
	Unavailable  *contract.Candidate    `json:"down,omitempty"` // set instead of Agents if all eligible agents are down
}

// Task is one part sent to one agent.
type Task struct {
	ID      string    `json:"id"`
	AgentID string    `json:"agent_id"`
	Part    int       `json:"part"` // index into Record.Parts
	State   TaskState `json:"state"`
	SentAt  time.Time `json:"sent_at"`

	Idempotent bool `json:"idempotent,omitzero"` // the agent was registered as idempotent when the task was sent

	Attempts  int     `json:"attempts"`
	LatencyMS float64 `json:"latency_ms,omitzero"`

	Pull *Pull `json:"pull,omitempty"` // of a task that its agent pulls

	// The outcome of a done task is a Result or an Err.
	Result     *contract.Result    `json:"result,omitempty"`
	ResultHash string              `json:"result_hash,omitempty"`
	Err        *contract.TaskError `json:"err,omitempty"`
	Uncertain  bool                `json:"uncertain,omitzero"` // the agent may have done the work, so no other agent gets it
}

// Outcome is the outcome of a task: a Result or an Err.
type Outcome struct {
	Result    *contract.Result
	Err       *contract.TaskError
	Uncertain bool
	Attempts  int
	LatencyMS float64
}

// FindTask returns the task with the id, or nil.
func (r *Record) FindTask(id string) *Task {
	for i := range r.Tasks {
		if r.Tasks[i].ID == id {
			return &r.Tasks[i]
		}
	}
	return nil
}

// HasOpenTask reports whether the agent has a task with this id that has no outcome.
func (r *Record) HasOpenTask(taskID, agentID string) bool {
	t := r.FindTask(taskID)
	return t != nil && t.AgentID == agentID && t.State != TaskDone && !r.State.Terminal()
}

// hasDelivered reports whether the agent delivered a result. A result with status
// failure does not count, because a standby may succeed.
func (t *Task) hasDelivered() bool {
	return t.Result != nil && t.Result.Status != contract.ResultFailure
}

// Snapshot returns the response to the caller: the final one, or the progress so far.
// It shares memory with the record.
func (r *Record) Snapshot() *contract.Response {
	switch {
	case r.Response != nil && r.Request.Options.Logs:
		return r.Response
	case r.Response != nil:
		return r.Response.WithoutLogs()
	}
	status, mode := contract.StatusAccepted, contract.DataMode("")
	if r.State == StateRunning {
		status, mode = contract.StatusRunning, contract.DataDispatch
	}
	return &contract.Response{
		RequestID: r.ID,
		TraceID:   r.TraceID,
		Status:    status,
		Decision:  r.Decision,
		Tasks:     r.Reports(),
		Omitted:   r.Omitted,
		Data:      contract.ResponseData{Mode: mode},
	}
}

// Reports returns one report for every part that was sent to an agent, in part order.
func (r *Record) Reports() []contract.TaskReport {
	reports := []contract.TaskReport{}
	for part := range r.Parts {
		if report, _ := r.PartOutcome(part); report != nil {
			reports = append(reports, *report)
		}
	}
	return reports
}

// PartOutcome returns the report of a part and the result that its agent delivered;
// nil if the part was not sent to an agent, or if there is no result. The report is
// that of the newest task, with the tasks before it as failed attempts.
func (r *Record) PartOutcome(part int) (*contract.TaskReport, *contract.Result) {
	var report *contract.TaskReport
	var result *contract.Result
	var failed []contract.FailedAttempt
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Part != part {
			continue
		}
		if report != nil {
			failed = append(failed, report.AsFailedAttempt(result))
		}
		newest := t.newReport(r.Parts[part].Title)
		report, result = &newest, t.Result
	}
	if report != nil {
		report.FailedOver = failed
	}
	return report, result
}

// newReport returns the task as its caller sees it.
func (t *Task) newReport(title string) contract.TaskReport {
	report := contract.TaskReport{
		TaskID: t.ID, AgentID: t.AgentID, SubtaskTitle: title,
		Attempts: t.Attempts, LatencyMS: t.LatencyMS, Error: t.Err,
	}
	switch {
	case t.State != TaskDone:
		report.Status = contract.TaskRunning
	case t.Result != nil:
		report.Status, report.Metrics = contract.TaskStatus(t.Result.Status), t.Result.ReportedMetrics()
	case t.Err != nil && t.Err.Code == contract.TaskWasCancelled:
		report.Status = contract.TaskCancelled
	default:
		report.Status = contract.TaskFailed
	}
	return report
}
