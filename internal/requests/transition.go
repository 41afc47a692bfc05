package requests

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Why a record does not move.
var (
	ErrEnded           = errors.New("the request has ended")
	ErrNotOwner        = errors.New("another process drives the request")
	ErrTransition      = errors.New("the request is not at that point")
	ErrUnknownTask     = errors.New("the request has no such task")
	ErrDifferentResult = errors.New("the task has another outcome")
)

// event is something that can happen to a request.
type event string

// The events, named as the methods are.
const (
	eventPlan     event = "plan"
	eventStart    event = "start"
	eventSend     event = "send"
	eventResend   event = "resend"
	eventWait     event = "wait"
	eventFinish   event = "finish"
	eventDeliver  event = "deliver"
	eventTakeOver event = "take over"
	eventEnd      event = "end"
)

// allowed is the table of the package comment: which event may happen in which
// state. After the end nothing may.
func allowed(s State, e event) bool {
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

// allow returns why the event may not happen now.
func (r *Record) allow(e event) error {
	switch {
	case r.State.Terminal():
		return ErrEnded
	case !allowed(r.State, e):
		return fmt.Errorf("%s: %w: it is %s", e, ErrTransition, r.State)
	}
	return nil
}

// CheckOwner returns ErrNotOwner unless the owner drives the request in that epoch.
// What a process does to a request it drives begins with this, so that one which
// was thought dead cannot go on beside its successor.
func (r *Record) CheckOwner(owner string, epoch int) error {
	if r.Epoch != epoch || r.Owner != "" && r.Owner != owner {
		return fmt.Errorf("%w: %q in epoch %d, not %q in epoch %d", ErrNotOwner, r.Owner, r.Epoch, owner, epoch)
	}
	return nil
}

// Plan puts on record what was decided.
func (r *Record) Plan(decision *contract.Decision, parts []Part, omitted []contract.Omitted) error {
	if err := r.allow(eventPlan); err != nil {
		return err
	}
	if decision == nil {
		return fmt.Errorf("plan: %w: nothing was decided", ErrTransition)
	}
	r.State, r.Decision, r.Parts, r.Omitted = StatePlanned, decision, parts, omitted
	return nil
}

// Start lets tasks be given out by the owner, whose the request becomes unless
// it is somebody else's.
func (r *Record) Start(owner string, epoch int) error {
	if err := r.allow(eventStart); err != nil {
		return err
	}
	if err := r.CheckOwner(owner, epoch); err != nil {
		return err
	}
	r.State, r.Owner = StateRunning, owner
	return nil
}

// Send puts on record that the task is about to be given out. A part is with one
// agent at a time, and with none any more once it was delivered or may have been:
// work is never given out twice.
func (r *Record) Send(t Task) error {
	if err := r.allow(eventSend); err != nil {
		return err
	}
	if err := r.maySend(&t); err != nil {
		return fmt.Errorf("send task %q to %q: %w: %w", t.ID, t.AgentID, ErrTransition, err)
	}
	r.Tasks = append(r.Tasks, Task{
		ID: t.ID, AgentID: t.AgentID, Part: t.Part, State: TaskSent, SentAt: t.SentAt, Attempts: max(t.Attempts, 1), Idempotent: t.Idempotent,
	})
	return nil
}

func (r *Record) maySend(t *Task) error {
	switch {
	case t.ID == "":
		return errors.New("it has no id")
	case r.task(t.ID) != nil:
		return errors.New("it was given out before")
	case t.Part < 0 || t.Part >= len(r.Parts):
		return fmt.Errorf("there is no part %d", t.Part)
	case !slices.Contains(r.Parts[t.Part].Agents, t.AgentID):
		return fmt.Errorf("nobody decided that it may do part %d", t.Part)
	}
	for i := range r.Tasks {
		switch other := &r.Tasks[i]; {
		case other.Part != t.Part:
		case other.State != TaskDone:
			return fmt.Errorf("task %q of the part is with %q", other.ID, other.AgentID)
		case other.delivered(), other.Uncertain:
			return fmt.Errorf("%q did the part, or may have", other.AgentID)
		}
	}
	return nil
}

// Resend puts on record that the task is about to be given to its agent again,
// under the same id. Only who knows that the agent takes a task twice for once may
// do so, and only as long as the agent did not say that it has it.
func (r *Record) Resend(taskID string, attempt int) error {
	t, err := r.openTask(eventResend, taskID)
	if err != nil {
		return err
	}
	if t.State != TaskSent {
		return fmt.Errorf("resend task %q: %w: it is %s", taskID, ErrTransition, t.State)
	}
	if attempt <= t.Attempts {
		return fmt.Errorf("resend task %q: %w: attempt %d was made, of %d", taskID, ErrTransition, attempt, t.Attempts)
	}
	t.Attempts = attempt
	return nil
}

// Wait puts on record that the agent has the task and its result comes later.
func (r *Record) Wait(taskID string) error {
	t, err := r.openTask(eventWait, taskID)
	if err != nil {
		return err
	}
	if t.State != TaskSent {
		return fmt.Errorf("wait for task %q: %w: it is %s", taskID, ErrTransition, t.State)
	}
	t.State = TaskWaiting
	return nil
}

// Finish gives a task its outcome. The first one stays: ErrOtherResult says that
// there was one, which may be a result that came by callback meanwhile. The same
// Result again is no error: how long it took, no callback says.
func (r *Record) Finish(taskID string, out Outcome) error {
	t, err := r.openTask(eventFinish, taskID)
	if err != nil {
		return err
	}
	if (out.Result == nil) == (out.Err == nil) {
		return fmt.Errorf("finish task %q: %w: an outcome is a result or an error", taskID, ErrTransition)
	}
	hash, err := hashResult(out.Result)
	if err != nil {
		return fmt.Errorf("finish task %q: %w", taskID, err)
	}
	if t.State == TaskDone {
		if err := t.again(hash); err != nil {
			return err
		}
	} else {
		t.State, t.Result, t.ResultHash, t.Err, t.Uncertain = TaskDone, out.Result, hash, out.Err, out.Uncertain
	}
	t.Attempts, t.LatencyMS = max(t.Attempts, out.Attempts), max(t.LatencyMS, out.LatencyMS)
	return nil
}

// Deliver gives a task the result its agent sent by callback. fresh is false when
// the task had this result already, which it may be told for ever. A task that was
// given up has its outcome: a result that comes after it is ErrOtherResult.
func (r *Record) Deliver(taskID, agentID string, res *contract.Result) (fresh bool, err error) {
	t := r.task(taskID)
	if t == nil || t.AgentID != agentID || res == nil {
		return false, fmt.Errorf("%w: %q for %q", ErrUnknownTask, taskID, agentID)
	}
	hash, err := hashResult(res)
	if err != nil {
		return false, fmt.Errorf("result of task %q: %w", taskID, err)
	}
	if t.State == TaskDone && t.again(hash) == nil {
		return false, nil
	}
	if err := r.allow(eventDeliver); err != nil {
		return false, err
	}
	if t.State == TaskDone {
		return false, t.again(hash)
	}
	t.State, t.Result, t.ResultHash = TaskDone, res, hash
	return true, nil
}

// again returns nil when the task has just this result.
func (t *Task) again(hash string) error {
	if hash != "" && hash == t.ResultHash {
		return nil
	}
	return fmt.Errorf("task %q: %w", t.ID, ErrDifferentResult)
}

// End is the end: the one terminal state and the answer that stays. What becomes
// of the answer is made of the tasks of this very record, in the same change, so
// that no result that came meanwhile is left out.
func (r *Record) End(status contract.Status, response *contract.Response, now time.Time) error {
	if err := r.allow(eventEnd); err != nil {
		return err
	}
	if !State(status).Terminal() || response == nil {
		return fmt.Errorf("end: %w: %q is no end, or has no answer", ErrTransition, status)
	}
	r.State, r.Response, r.EndedAt = State(status), response, now.UTC()
	return nil
}

// TakeOver makes the request the owner's, who goes on where its last one stopped.
func (r *Record) TakeOver(owner string, now time.Time) error {
	if err := r.allow(eventTakeOver); err != nil {
		return err
	}
	r.Owner, r.TakenOverAt = owner, now.UTC()
	r.Epoch++
	return nil
}

// openTask returns a task that the event may happen to.
func (r *Record) openTask(e event, id string) (*Task, error) {
	if err := r.allow(e); err != nil {
		return nil, err
	}
	if t := r.task(id); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: %w: %q", e, ErrUnknownTask, id)
}
