package requests

import (
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Pull is the state of a task that its agent pulls.
type Pull struct {
	BeginBy time.Time `json:"begin_by"`         // the first lease must begin before
	DueBy   time.Time `json:"due_by"`           // the result must arrive before
	Leases  int       `json:"leases,omitzero"`  // how often the agent has got the task
	Until   time.Time `json:"until,omitzero"`   // the end of the latest lease
	TTLS    int       `json:"ttl_s,omitzero"`   // of the latest lease, in seconds
	Holder  string    `json:"holder,omitempty"` // the instance that has the latest lease
}

// ErrNotLeasable rejects the lease of a task that cannot be given to its agent now.
var ErrNotLeasable = errors.New("the task cannot be leased now")

// PullPhase is the phase of a task that its agent pulls and that has no outcome.
type PullPhase int

// The phases of a task that is pulled.
const (
	PullOffered   PullPhase = iota // the agent may get it
	PullLeased                     // the agent has it
	PullMissed                     // the agent has never got it, and its time is over
	PullLost                       // the lease has expired, and the agent is not idempotent
	PullExhausted                  // the last permitted lease has expired
)

// PhaseAt returns the phase of the task, and when the passing of time changes it.
func (t *Task) PhaseAt(now time.Time) (phase PullPhase, until time.Time) {
	p := t.Pull
	switch {
	case p.Leases == 0 && now.Before(p.BeginBy):
		return PullOffered, p.BeginBy
	case p.Leases == 0:
		return PullMissed, p.DueBy
	case now.Before(p.Until):
		return PullLeased, p.Until
	case !t.Idempotent:
		return PullLost, p.DueBy
	case p.Leases >= contract.MaxTaskLeases:
		return PullExhausted, p.DueBy
	}
	return PullOffered, p.DueBy
}

// Lease gives the task to an instance of its agent, for the time to live in seconds. It
// returns ErrNotLeasable if the agent must not get the task now.
func (r *Record) Lease(taskID, agentID, instance string, ttlS int, now time.Time) error {
	t, err := r.pulledTask(eventLease, taskID, agentID)
	if err != nil {
		return err
	}
	if phase, _ := t.PhaseAt(now); phase != PullOffered || !now.Before(t.Pull.DueBy) {
		return fmt.Errorf("lease task %q: %w", taskID, ErrNotLeasable)
	}
	next := *t.Pull // a snapshot may share it
	next.Leases++
	next.Holder, next.TTLS, next.Until = instance, ttlS, now.Add(time.Duration(ttlS)*time.Second).UTC()
	t.Pull, t.Attempts = &next, next.Leases
	return nil
}

// Renew begins the lease anew. It also renews one that has expired, unless the task has
// been given up or is leased again: then it returns ErrNotLeasable.
func (r *Record) Renew(taskID, agentID string, lease int, now time.Time) error {
	t, err := r.pulledTask(eventRenew, taskID, agentID)
	if err != nil {
		return err
	}
	if lease != t.Pull.Leases || lease == 0 || !now.Before(t.Pull.DueBy) {
		return fmt.Errorf("renew the lease of task %q: %w", taskID, ErrNotLeasable)
	}
	next := *t.Pull
	next.Until = now.Add(time.Duration(next.TTLS) * time.Second).UTC()
	t.Pull = &next
	return nil
}

// pulledTask returns a task without an outcome that the agent pulls.
func (r *Record) pulledTask(e event, taskID, agentID string) (*Task, error) {
	t, err := r.taskFor(e, taskID)
	switch {
	case err != nil:
		return nil, err
	case t.AgentID != agentID || t.Pull == nil:
		return nil, fmt.Errorf("%s: %w: %q for %q", e, ErrUnknownTask, taskID, agentID)
	case t.State == TaskDone:
		return nil, fmt.Errorf("%s task %q: %w", e, taskID, ErrNotLeasable)
	}
	return t, nil
}

// checkLeased makes an outcome without a result uncertain if the agent has got the task,
// and is not idempotent. The owner of the request decides that a task is withdrawn while
// another process may lease it: the record decides which of both came first.
func (t *Task) checkLeased(out *Outcome) {
	if out.Err == nil || out.Uncertain || t.Idempotent || t.Pull == nil || t.Pull.Leases == 0 {
		return
	}
	out.Uncertain = true
	if out.Err.Code == contract.TaskAgentUnavailable || out.Err.Code == contract.TaskDeadlineExceeded {
		out.Err = &contract.TaskError{
			Code: contract.TaskOutcomeUnknown, Detail: t.AgentID + " pulled the task just before it was withdrawn: it may have done it",
		}
	}
}
