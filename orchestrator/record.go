package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// RecordVersion is the version of the stored format of a Record.
const RecordVersion = 1

// Record is the state of one run. One goroutine owns a record; the methods change it. It
// is stored by compare-and-set after every step and before every call, so that another
// process can continue the run from it.
type Record struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	TraceID string          `json:"trace_id"`
	Caller  contract.Caller `json:"caller"`
	Agent   string          `json:"agent,omitempty"` // of the registry, whose task the run is; "" = the caller's own
	// RequestID is the id of the request that the task belongs to; "" if the run is no task.
	RequestID string `json:"request_id,omitempty"`
	// KeyName is the store's name of the idempotency key of the goal; "" = none.
	KeyName string `json:"key,omitempty"`
	// Restricted means that the agent declares mcp_capabilities, which limit its servers.
	Restricted bool          `json:"restricted,omitzero"`
	Goal       contract.Goal `json:"goal"`

	State  State              `json:"state"`
	Reason contract.RunReason `json:"reason,omitempty"`

	Owner       string    `json:"owner,omitempty"` // the process that executes it; "" = none, it waits for a person
	Epoch       int       `json:"epoch"`           // number of changes of the owner
	CancelledBy string    `json:"cancelled_by,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	Deadline    time.Time `json:"deadline"` // moves by the time that the run waits for a person
	ParkedAt    time.Time `json:"parked_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`

	Planner  contract.RunModel    `json:"planner"`
	Verifier contract.RunModel    `json:"verifier"`
	Servers  []contract.ServerUse `json:"servers,omitempty"`

	Plan    *contract.Plan          `json:"plan,omitempty"`
	Hash    string                  `json:"plan_sha256,omitempty"`
	Plans   int                     `json:"plans,omitzero"`
	Steps   []Step                  `json:"steps,omitempty"` // of the plan, in its order
	Outputs []contract.ToolOutput   `json:"outputs,omitempty"`
	Gates   []contract.ApprovalGate `json:"gates,omitempty"`
	Calls   int                     `json:"calls,omitzero"`
	Retries int                     `json:"retries,omitzero"`

	Events []contract.RunEvent `json:"events,omitempty"`
	Errors []contract.RunError `json:"errors,omitempty"`
}

// StepState is the state of a step.
type StepState string

// States of a step.
const (
	StepPending StepState = ""
	StepGated   StepState = "gated"   // waits for a person
	StepCalling StepState = "calling" // the call may have been sent
	StepDone    StepState = "done"
	StepFailed  StepState = "failed"
	StepUnknown StepState = "unknown" // the call may have been executed
)

// Step is the state of one step of the plan.
type Step struct {
	State      StepState          `json:"state,omitempty"`
	Gate       int                `json:"gate,omitzero"` // index into Record.Gates + 1; 0 = none
	Approved   bool               `json:"approved,omitzero"`
	Repeatable bool               `json:"repeatable,omitzero"` // the call may be repeated
	Attempts   int                `json:"attempts,omitzero"`
	Reason     contract.RunReason `json:"reason,omitempty"` // of a failed one
}

// Errors of changes of a Record.
var (
	ErrNotOwner = errors.New("another process executes the run, or it has ended")
	ErrEnded    = errors.New("the run has ended")
)

// Advance applies an event, and adds it to the audit trail.
func (r *Record) Advance(event Event, entry contract.RunEvent, now time.Time) error {
	if r.State.Terminal() {
		return ErrEnded
	}
	next, err := nextState(r.State, event)
	if err != nil {
		return err
	}
	r.State = next
	entry.Seq, entry.At, entry.Event, entry.State = len(r.Events)+1, now.UTC(), string(event), string(next)
	r.Events = append(r.Events, entry)
	if next.Terminal() {
		r.EndedAt, r.ParkedAt = now.UTC(), time.Time{}
	}
	return nil
}

// fail applies an event that ends the run for a reason.
func (r *Record) fail(event Event, failure contract.RunError, now time.Time) error {
	r.Reason = failure.Reason
	r.Errors = append(r.Errors, failure)
	return r.Advance(event, contract.RunEvent{StepID: failure.StepID, Detail: failure.Message}, now)
}

// Cancel ends the run if no process executes it; otherwise its process ends it.
func (r *Record) Cancel(by string, now time.Time) error {
	if r.State.Terminal() {
		return ErrEnded
	}
	if r.CancelledBy == "" {
		r.CancelledBy = by
	}
	if r.Owner != "" {
		return nil
	}
	return r.endCancelled(now)
}

func (r *Record) endCancelled(now time.Time) error {
	return r.fail(EventCancelled, contract.RunError{Reason: contract.ReasonCancelled, Message: "the run was cancelled by " + r.CancelledBy}, now)
}

// TakeOver makes owner the process that executes the run.
func (r *Record) TakeOver(owner string, now time.Time) error {
	detail := "taken over from a process that has ended"
	if !r.ParkedAt.IsZero() {
		r.Deadline = r.Deadline.Add(now.Sub(r.ParkedAt))
		r.ParkedAt, detail = time.Time{}, "continues after waiting for a person"
	}
	r.Owner = owner
	r.Epoch++
	return r.Advance(EventResumed, contract.RunEvent{Detail: detail}, now)
}

// OpenGate returns the gate of a step that waits for a decision, nil if there is none.
func (r *Record) OpenGate(step string) *contract.ApprovalGate {
	for i := range r.Gates {
		if g := &r.Gates[i]; g.StepID == step && g.Decision == "" && !r.State.Terminal() {
			return g
		}
	}
	return nil
}

// NeedsWork reports whether a run that waits for a person can continue: a gate has a
// decision, or no gate waits any more.
func (r *Record) NeedsWork(now time.Time) bool {
	if r.State.Terminal() || r.Owner != "" {
		return false
	}
	for i := range r.Steps {
		if s := &r.Steps[i]; s.State == StepGated {
			if g := &r.Gates[s.Gate-1]; g.Decision != "" || !now.Before(g.ExpiresAt) {
				return true
			}
		}
	}
	return !r.hasGatedStep()
}

// hasGatedStep reports whether a step waits for a person.
func (r *Record) hasGatedStep() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.State == StepGated })
}

// mayCall reports whether the caller may call the tool at all. A task of an agent needs no
// scope of the tool, because the caller may use the agent.
func (r *Record) mayCall(action string) bool {
	return r.Agent != "" || r.Caller.MayInvoke(action)
}

// permits reports whether the goal's constraints permit an action, so that a planner does
// not plan with a tool that the policy would deny.
func (r *Record) permits(action string) bool {
	limits := &r.Goal.Constraints
	return !policy.MatchesAny(limits.Deny, action) && (len(limits.Allow) == 0 || policy.MatchesAny(limits.Allow, action))
}

// Status returns the status of the run.
func (r *Record) Status() contract.OrchestrationStatus {
	switch {
	case r.State.Terminal():
		return contract.OrchestrationStatus(r.State)
	case !r.ParkedAt.IsZero():
		return contract.OrchestrationWaiting
	}
	return contract.OrchestrationRunning
}

// Snapshot returns the run as its caller sees it. It shares memory with the record.
func (r *Record) Snapshot() *contract.Orchestration {
	return &contract.Orchestration{
		OrchestrationID: r.ID, TraceID: r.TraceID, Status: r.Status(), State: string(r.State), Reason: r.Reason, Goal: r.Goal.Goal,
		Plan: r.Plan, ToolOutputs: emptyIfNil(r.Outputs), Gates: r.Gates, AuditTrail: emptyIfNil(r.Events), Errors: emptyIfNil(r.Errors),
		Provenance: contract.Provenance{
			Planner: r.Planner, Verifier: r.Verifier, Servers: emptyIfNil(r.Servers), Plans: r.Plans, PlanHash: r.Hash, Calls: r.Calls, Retries: r.Retries,
		},
		CreatedAt: r.CreatedAt, EndedAt: r.EndedAt,
	}
}

func emptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// planOutputs returns the outputs of the present plan.
func (r *Record) planOutputs() []contract.ToolOutput {
	var out []contract.ToolOutput
	for i := range r.Outputs {
		if r.Outputs[i].Plan == r.Plans {
			out = append(out, r.Outputs[i])
		}
	}
	return out
}

// values returns the outputs of the present plan for references.
func (r *Record) values() map[string]json.RawMessage {
	values := map[string]json.RawMessage{}
	for _, out := range r.planOutputs() {
		if out.Status == contract.OutputOK {
			values[out.StepID] = outputValue(out.Result)
		}
	}
	return values
}

// done returns the steps that are done.
func (r *Record) done() map[string]bool {
	done := map[string]bool{}
	for i := range r.Steps {
		if r.Steps[i].State == StepDone {
			done[r.Plan.Steps[i].ID] = true
		}
	}
	return done
}

// Check returns an error if the record is not consistent.
func (r *Record) Check(id string) error {
	switch {
	case r.Version != RecordVersion:
		return fmt.Errorf("format version %d, want %d", r.Version, RecordVersion)
	case r.ID != id:
		return fmt.Errorf("it is the record of run %.150q", r.ID)
	case r.Plan == nil && len(r.Steps) > 0, r.Plan != nil && len(r.Steps) != len(r.Plan.Steps):
		return fmt.Errorf("%d states of steps do not match the plan", len(r.Steps))
	}
	for i := range r.Steps {
		if g := r.Steps[i].Gate; g < 0 || g > len(r.Gates) || g == 0 && r.Steps[i].State == StepGated {
			return fmt.Errorf("step %d has an unknown gate", i)
		}
	}
	return nil
}

// Store holds the records of runs.
type Store interface {
	// Update changes a record by optimistic concurrency control: change may be called
	// several times. It returns the record as written. If change returns an error, nothing
	// is written, and the error comes with the record as stored.
	Update(ctx context.Context, id string, change func(*Record) error) (*Record, error)
}
