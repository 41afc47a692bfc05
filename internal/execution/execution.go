// Package execution runs a plan: it sends one task for each part, fails over to
// standbys, waits for results that agents post to their callback URL, and cancels
// tasks. Each attempt of a part:
//
//	Dispatcher.Send ──▶ Recorder.Sent ──▶ the agent's response
//	                                           │ 202 Accepted
//	                                           ▼
//	                       Recorder.AwaitingCallback ──▶ Callbacks.AcceptResult
//	                                           │
//	                       Recorder.Finished ◀─┘ the first outcome of a task counts
//
// A task that may have been executed is never given to another agent. Each agent
// gets a task of its own, with its own id and token.
//
// A synchronous request keeps its tasks in memory until one of them is answered with 202
// (PromotingTaskRecorder). An asynchronous request writes them to its stored record
// (DurableRecorder), from which another process can resume the execution. Package
// execution does not know how agents are reached (dispatch), which agents are eligible
// (router/plan), or when a request is executed (router, internal/asyncrun).
package execution

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/router/plan"
)

// Dispatcher sends one task to one agent and returns its outcome, by the deadline
// of the context.
type Dispatcher interface {
	Send(ctx context.Context, call dispatch.Call) dispatch.Outcome
	// Prepare mints the token of a task that may not be sent yet, for its Call, and begins to
	// connect to the agent.
	Prepare(ctx context.Context, call dispatch.Call) dispatch.Token
	// CancelTask asks the agent to abandon the task, because its result is not
	// needed.
	CancelTask(call dispatch.Call)
}

// Request is an accepted request. It is immutable: the router builds it once,
// from the request of a client or from a stored record, and every goroutine that
// works on it only reads it.
type Request struct {
	*contract.Request // as the client sent it, with all ids set
	Caller            *contract.Caller
	Masking           *redact.Masking // safe for concurrent use: masking more text only adds placeholders
	Prompt            string          // masked
	Locale            string          // masked, because clients may write anything into it
	Turns             []contract.Turn // masked: the conversation that precedes the prompt
	DataClasses       []string        // kinds of personal data that were masked in prompt and turns
	OnlyAgent         string          // the one agent that may be a candidate; "" = any
	AlreadyAsked      bool            // the session's last response was a clarification
	KeyName           string          // the store's name of its idempotency key; "" = none
	// Pinned is the classification that the caller or the session determined; nil
	// if the classifier is to be called.
	Pinned *session.Pinned
	// Previous is the classification of the session's last request, the latest user turn
	// of Turns, if it was dispatched and the caller does not ask for a new classification.
	Previous *contract.Classification
}

// SessionKey returns the store key of the request's session, "" if it has none.
func (r *Request) SessionKey() string { return session.Key(r.Caller, r.SessionID) }

// Subject returns the request as the audit log describes it.
func (r *Request) Subject() history.Subject {
	return history.Subject{Caller: r.Caller, Masking: r.Masking, Prompt: r.Prompt, SessionKey: r.SessionKey(), ShowLogs: r.Options.Logs}
}

// Persistence is what differs between the execution of synchronous and of asynchronous
// requests.
type Persistence struct {
	Recorder TaskRecorder
	Results  ResultStore // where results go that agents post to the callback URL
	Permit   Permit
	// MaxSends bounds how often one part is sent if no agent executes it: after the first
	// round over its agents, there is another one only if the part was sent less often.
	MaxSends int
}

// Run is one execution of a plan.
type Run struct {
	Persistence
	Request  *Request
	Registry Registry
	Plan     *plan.Plan
	// Previous are the tasks that were sent before this process took over the
	// request.
	Previous []requests.Task
	// Emit receives the events of tasks. It is called from several goroutines.
	Emit func(*contract.Event)
}

// Registry is the registry in force, which may change while a request waits.
type Registry interface {
	// Entry returns the entry of an agent, or nil if it is not registered.
	Entry(agentID string) *contract.RegistryEntry
	// Eligible returns the entry of an agent of the part, or nil and the error of its
	// task if the agent may not get the part any more. It is called before each send.
	Eligible(part *plan.Part, agentID string) (entry *contract.RegistryEntry, refusal *contract.TaskError)
	// Changed returns a channel that is closed when another registry is in force.
	Changed() <-chan struct{}
}

// Execution executes a plan once. One goroutine calls its methods.
type Execution struct {
	executor *Executor
	run      *Run
	parts    []partExecution
}

// Executor runs plans. It is safe for concurrent use.
type Executor struct {
	dispatcher Dispatcher
	callbacks  *Callbacks
	newID      func() string
	now        func() time.Time
}

// New returns an Executor. Results may also arrive by callback.
func New(d Dispatcher, callbacks *Callbacks, newID func() string, now func() time.Time) *Executor {
	return &Executor{dispatcher: d, callbacks: callbacks, newID: newID, now: now}
}

// NewExecution returns the execution of a plan, which has not begun.
func (e *Executor) NewExecution(r *Run) *Execution {
	x := &Execution{executor: e, run: r, parts: make([]partExecution, len(r.Plan.Parts))}
	inputs := newTaskInputs(r.Request)
	for i := range x.parts {
		x.parts[i] = partExecution{executor: e, run: r, index: i, part: &r.Plan.Parts[i], inputs: inputs}
	}
	return x
}

// Prepare makes the first task of each part and its token, and begins to connect to its agent,
// while the caller waits until the tasks may be sent. Nothing is sent, and Execute works
// without it.
func (x *Execution) Prepare(ctx context.Context) {
	for i := range x.parts {
		x.parts[i].prepareTask(ctx)
	}
}

// Execute sends all parts of the plan in parallel and returns their outcomes in
// the order of the parts. The caller holds one permit of the run, which is
// released while several parts execute with their own.
func (x *Execution) Execute(ctx context.Context) []plan.Outcome {
	r, parts := x.run, x.parts
	outcomes := make([]plan.Outcome, len(parts))
	// If there are several parts, each one counts as executing. A single part uses the permit
	// of the caller, so that the caller has it without a wait when it records the end.
	release := func() {}
	if len(parts) > 1 {
		release = r.Permit.Release
		for range parts {
			r.Permit.Acquire(ctx)
		}
		r.Permit.Release()
		defer r.Permit.Acquire(ctx)
	}
	run.ForEach(ctx, len(parts), len(parts), func(ctx context.Context, i int) {
		defer release()
		outcomes[i] = parts[i].executePart(ctx)
		report := outcomes[i].Report
		if !r.Request.Options.Logs {
			report.Logs = nil
		}
		r.Emit(&contract.Event{Type: contract.EventTaskDone, Task: &report})
	})
	return outcomes
}

// NotSent returns the outcome of a part that was not sent to any agent.
func (e *Executor) NotSent(part *plan.Part, code contract.TaskCode, detail string) plan.Outcome {
	agentID := ""
	switch {
	case part.Down != nil:
		agentID = part.Down.AgentID
	case len(part.Agents) > 0:
		agentID = part.Agents[0]
	}
	return plan.Outcome{Report: contract.TaskReport{
		TaskID: e.newID(), AgentID: agentID, SubtaskTitle: part.Title, Status: contract.TaskFailed,
		Error: &contract.TaskError{Code: code, Detail: detail},
	}}
}

// NoneSent returns the outcomes of a plan of which no part was sent to any agent.
func (e *Executor) NoneSent(p *plan.Plan, code contract.TaskCode, detail string) []plan.Outcome {
	outcomes := make([]plan.Outcome, len(p.Parts))
	for i := range p.Parts {
		outcomes[i] = e.NotSent(&p.Parts[i], code, detail)
	}
	return outcomes
}

// StopTasks asks the agents of a stored request to abandon the tasks that have not
// ended. It is for a request that this process does not execute.
func (e *Executor) StopTasks(rec *requests.Record, fleet *capabilities.Fleet) {
	for i := range rec.Tasks {
		t := &rec.Tasks[i]
		if agent := fleet.Agent(t.AgentID); agent != nil && t.State != requests.TaskDone {
			e.dispatcher.CancelTask(dispatch.Call{
				Agent: agent, Caller: &rec.Caller, Task: contract.Task{TaskID: t.ID, RequestID: rec.ID, TraceID: rec.TraceID},
			})
		}
	}
}
