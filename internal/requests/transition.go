package requests

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Errors of transitions.
var (
	ErrEnded           = errors.New("the request has ended")
	ErrNotOwner        = errors.New("another process owns the request")
	ErrTransition      = errors.New("the request is in another state")
	ErrUnknownTask     = errors.New("the request has no such task")
	ErrDifferentResult = errors.New("the task already has a different outcome")
)

// event is a transition of a record.
type event string

// Events have the names of the methods.
const (
	eventPlan     event = "plan"
	eventStart    event = "start"
	eventSend     event = "send"
	eventResend   event = "resend"
	eventWait     event = "wait"
	eventFinish   event = "finish"
	eventDeliver  event = "deliver"
	eventLease    event = "lease"
	eventRenew    event = "renew"
	eventTakeOver event = "take over"
	eventEnd      event = "end"
	eventAdopt    event = "adopt the end"
)

// isAllowed implements the state table of the package comment. After the end nothing
// is allowed.
func isAllowed(s State, e event) bool {
	switch s {
	case StateAccepted:
		return e == eventPlan || e == eventTakeOver || e == eventEnd
	case StatePlanned:
		return e == eventStart || e == eventTakeOver || e == eventEnd
	case StateRunning:
		return e != eventPlan && e != eventStart
	}
	return false
}

// checkEvent returns an error if the event is not allowed in the current state.
func (r *Record) checkEvent(e event) error {
	switch {
	case r.State.Terminal():
		return ErrEnded
	case !isAllowed(r.State, e):
		return fmt.Errorf("%s: %w: %s", e, ErrTransition, r.State)
	}
	return nil
}

// CheckOwner returns ErrNotOwner unless the owner executes the request in this epoch.
// Every change by the executing process begins with it, so that a process that was
// believed dead cannot continue beside its successor.
func (r *Record) CheckOwner(owner string, epoch int) error {
	if r.Epoch != epoch || r.Owner != "" && r.Owner != owner {
		return fmt.Errorf("%w: %q in epoch %d, want %q in epoch %d", ErrNotOwner, r.Owner, r.Epoch, owner, epoch)
	}
	return nil
}

// Plan stores the decision and the planned parts.
func (r *Record) Plan(decision *contract.Decision, parts []Part, omitted []contract.Omitted) error {
	if err := r.checkEvent(eventPlan); err != nil {
		return err
	}
	if decision == nil {
		return fmt.Errorf("plan: %w: no decision", ErrTransition)
	}
	r.State, r.Decision, r.Parts, r.Omitted = StatePlanned, decision, parts, omitted
	return nil
}

// Start lets the owner send tasks. A request without an owner gets this one.
func (r *Record) Start(owner string, epoch int) error {
	if err := r.checkEvent(eventStart); err != nil {
		return err
	}
	if err := r.CheckOwner(owner, epoch); err != nil {
		return err
	}
	r.State, r.Owner = StateRunning, owner
	return nil
}

// Send stores that the task is about to be sent. It returns ErrTransition if the part
// has an open task, or if an agent delivered a result or may have done the work: work
// is never sent to two agents. A task with a Pull waits for its agent.
func (r *Record) Send(t Task) error {
	if err := r.checkEvent(eventSend); err != nil {
		return err
	}
	if err := r.checkSend(&t); err != nil {
		return fmt.Errorf("send task %q to %q: %w: %w", t.ID, t.AgentID, ErrTransition, err)
	}
	state, attempts := TaskSent, max(t.Attempts, 1)
	if t.Pull != nil {
		state, attempts = TaskWaiting, 0 // its leases are its attempts
	}
	r.Tasks = append(r.Tasks, Task{
		ID: t.ID, AgentID: t.AgentID, Part: t.Part, State: state, SentAt: t.SentAt, Attempts: attempts, Idempotent: t.Idempotent, Pull: t.Pull,
	})
	return nil
}

func (r *Record) checkSend(t *Task) error {
	switch {
	case t.ID == "":
		return errors.New("no id")
	case r.FindTask(t.ID) != nil:
		return errors.New("it was sent before")
	case t.Part < 0 || t.Part >= len(r.Parts):
		return fmt.Errorf("unknown part %d", t.Part)
	case !slices.Contains(r.Parts[t.Part].Agents, t.AgentID):
		return fmt.Errorf("the agent was not chosen for part %d", t.Part)
	}
	for i := range r.Tasks {
		switch other := &r.Tasks[i]; {
		case other.Part != t.Part:
		case other.State != TaskDone:
			return fmt.Errorf("task %q of this part is open at %q", other.ID, other.AgentID)
		case other.hasDelivered(), other.Uncertain:
			return fmt.Errorf("%q has done this part, or may have done it", other.AgentID)
		}
	}
	return nil
}

// Resend stores that the task is about to be sent to its agent again, with the same
// id. The caller must know that the agent is idempotent. It returns ErrTransition if
// the agent has acknowledged the task.
func (r *Record) Resend(taskID string, attempt int) error {
	t, err := r.taskFor(eventResend, taskID)
	if err != nil {
		return err
	}
	if t.State != TaskSent {
		return fmt.Errorf("resend task %q: %w: %s", taskID, ErrTransition, t.State)
	}
	if attempt <= t.Attempts {
		return fmt.Errorf("resend task %q: %w: attempt %d, and %d were made", taskID, ErrTransition, attempt, t.Attempts)
	}
	t.Attempts = attempt
	return nil
}

// Wait stores that the agent has accepted the task and delivers its result later.
func (r *Record) Wait(taskID string) error {
	t, err := r.taskFor(eventWait, taskID)
	if err != nil {
		return err
	}
	if t.State != TaskSent {
		return fmt.Errorf("wait for task %q: %w: %s", taskID, ErrTransition, t.State)
	}
	t.State = TaskWaiting
	return nil
}

// Finish stores the outcome of a task. The first outcome stays: if there is another
// one, for example because a callback was faster, Finish returns ErrDifferentResult.
// The same Result again is no error, because only Finish knows its latency. If an agent
// has pulled the task, and is not idempotent, the outcome is uncertain in any case.
func (r *Record) Finish(taskID string, out Outcome) error {
	t, err := r.taskFor(eventFinish, taskID)
	if err != nil {
		return err
	}
	if (out.Result == nil) == (out.Err == nil) {
		return fmt.Errorf("finish task %q: %w: want a result or an error", taskID, ErrTransition)
	}
	hash, err := hashResult(out.Result)
	if err != nil {
		return fmt.Errorf("finish task %q: %w", taskID, err)
	}
	if t.State == TaskDone {
		if err := t.compareResult(hash); err != nil {
			return err
		}
	} else {
		t.checkLeased(&out)
		t.State, t.Result, t.ResultHash, t.Err, t.Uncertain = TaskDone, out.Result, hash, out.Err, out.Uncertain
	}
	t.Attempts, t.LatencyMS = max(t.Attempts, out.Attempts), max(t.LatencyMS, out.LatencyMS)
	return nil
}

// Deliver stores the result that an agent sent by callback. fresh is false if the task
// has this result already, so that agents can retry at any time. It returns
// ErrDifferentResult if the task has another outcome, for example because it was given
// up.
func (r *Record) Deliver(taskID, agentID string, res *contract.Result) (fresh bool, err error) {
	t := r.FindTask(taskID)
	if t == nil || t.AgentID != agentID || res == nil {
		return false, fmt.Errorf("%w: %q for %q", ErrUnknownTask, taskID, agentID)
	}
	hash, err := hashResult(res)
	if err != nil {
		return false, fmt.Errorf("result of task %q: %w", taskID, err)
	}
	if t.State == TaskDone && t.compareResult(hash) == nil {
		return false, nil
	}
	if err := r.checkEvent(eventDeliver); err != nil {
		return false, err
	}
	if t.State == TaskDone {
		return false, t.compareResult(hash)
	}
	t.State, t.Result, t.ResultHash = TaskDone, res, hash
	return true, nil
}

// compareResult returns nil if the task has the result with this hash.
func (t *Task) compareResult(hash string) error {
	if hash != "" && hash == t.ResultHash {
		return nil
	}
	return fmt.Errorf("task %q: %w", t.ID, ErrDifferentResult)
}

// End stores the terminal state and the response. Build the response from the tasks of
// this record in the same Update, so that it contains a result that arrived meanwhile.
func (r *Record) End(status contract.Status, response *contract.Response, now time.Time) error {
	if err := r.checkEvent(eventEnd); err != nil {
		return err
	}
	if !State(status).Terminal() || response == nil {
		return fmt.Errorf("end: %w: status %q is not terminal, or there is no response", ErrTransition, status)
	}
	r.State, r.Response, r.EndedAt = State(status), response, now.UTC()
	r.dropInputs()
	return nil
}

// dropInputs removes what only an open request needs. The response contains the
// results, and the hashes of results remain, so that a repeated one is recognised. The
// prompt remains until the response is in the audit log, which may be after a restart.
func (r *Record) dropInputs() {
	r.Request.Content.Inputs, r.History, r.Pinned = nil, nil, nil
	r.Tasks = slices.Clone(r.Tasks) // a snapshot may share them
	for i := range r.Tasks {
		r.Tasks[i].Result = nil
	}
}

// TakeOver makes owner the executing process, which resumes the request.
func (r *Record) TakeOver(owner string, now time.Time) error {
	if err := r.checkEvent(eventTakeOver); err != nil {
		return err
	}
	r.Owner, r.TakenOverAt = owner, now.UTC()
	r.Epoch++
	return nil
}

// IsAbandoned reports whether the owner does not execute the request any more, so that
// another process has to take it over or, if it has ended, to conclude it. A request
// without an owner is abandoned.
func (r *Record) IsAbandoned(isLive func(owner string) bool) bool {
	return r.Owner == "" || !isLive(r.Owner)
}

// AdoptEnd makes owner the process that does what follows from the end of the request,
// for example writes it to the audit log. The end itself stays as it is.
func (r *Record) AdoptEnd(owner string, now time.Time) error {
	if !r.State.Terminal() {
		return fmt.Errorf("%s: %w: %s", eventAdopt, ErrTransition, r.State)
	}
	if r.Owner == owner {
		return nil
	}
	r.Owner, r.TakenOverAt = owner, now.UTC()
	r.Epoch++
	return nil
}

// taskFor returns the task if the event is allowed.
func (r *Record) taskFor(e event, id string) (*Task, error) {
	if err := r.checkEvent(e); err != nil {
		return nil, err
	}
	if t := r.FindTask(id); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: %w: %q", e, ErrUnknownTask, id)
}
