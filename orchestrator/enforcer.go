package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// Enforcer decides whether a call may be made. It is called before every call.
// *policy.Policy implements it.
type Enforcer interface {
	Judge(call *policy.Call) policy.Verdict
}

// judge returns the verdict about a call. earlier are the calls of the run before it; one
// that is made at the same time has no result.
func (x *execution) judge(c *preparedCall, earlier []contract.ToolOutput) policy.Verdict {
	goal := &x.rec.Goal
	call := &policy.Call{
		Action: c.plan.Action, Arguments: c.input, Goal: goal.Goal, EnvContext: goal.EnvContext,
		Allow: goal.Constraints.Allow, Deny: goal.Constraints.Deny,
	}
	call.Server, call.Tool, _ = strings.Cut(c.plan.Action, ".")
	if t := c.tool; t != nil {
		server := x.tools.servers[t.Server]
		call.Server, call.Tool, call.Description, call.InputSchema = t.Server, t.Name, t.Description, t.InputSchema
		call.Annotations, call.Transport, call.Host = policy.ParseAnnotations(t.Annotations), server.Transport, server.Host
	}
	for i := range earlier {
		call.Earlier = append(call.Earlier, policy.Step{
			Action: earlier[i].Action, Arguments: earlier[i].Arguments, Output: outputValue(earlier[i].Result),
		})
	}
	return x.o.cfg.Enforcer.Judge(call)
}

// admit applies the verdict of the policy, and reports whether the call may be made.
func (x *execution) admit(c *preparedCall) (bool, error) {
	v, approved := c.verdict, x.rec.Steps[c.step].Approved
	entry := contract.RunEvent{StepID: c.plan.ID, Action: c.plan.Action, Effect: string(v.Effect), Rule: v.Rule, Detail: v.Reason}
	switch {
	case v.Effect == policy.Allow || v.Effect == policy.Gate && approved:
		if v.Effect == policy.Gate { // gate_opened has the reason
			entry.By = x.rec.Gates[x.rec.Steps[c.step].Gate-1].DecidedBy
			entry.Detail = "approved by " + entry.By
		}
		if err := x.audit(EventPolicyAllow, entry); err != nil || x.rec.State.Terminal() {
			return false, err
		}
		return true, x.advance(EventPolicyAllow, entry, nil)
	case v.Effect == policy.Gate && x.o.cfg.BlockGates:
		return false, x.block(EventGateUnattended, entry, contract.RunError{
			Reason: contract.ReasonGateUnattended, StepID: c.plan.ID, Message: fmt.Sprintf("the call of %s needs an approval: %s", c.plan.Action, v.Reason),
			Suggestion: "set orchestrator.on_gate to wait, so that a person can approve it",
		}, nil)
	case v.Effect == policy.Gate:
		now := x.o.cfg.Now().UTC()
		if err := x.audit(EventGateOpened, entry); err != nil || x.rec.State.Terminal() {
			return false, err
		}
		return false, x.advance(EventGateOpened, entry, func(r *Record) {
			r.Gates = append(r.Gates, contract.ApprovalGate{
				StepID: c.plan.ID, Action: c.plan.Action, Rule: v.Rule, Reason: v.Reason, RequestedAt: now, ExpiresAt: now.Add(x.o.cfg.GateTTL),
			})
			r.Steps[c.step].State, r.Steps[c.step].Gate = StepGated, len(r.Gates)
		})
	}
	return false, x.block(EventPolicyBlock, entry, contract.RunError{
		Reason: contract.ReasonPolicyBlocked, StepID: c.plan.ID, Message: fmt.Sprintf("the policy does not permit the call of %s: %s", c.plan.Action, v.Reason),
	}, nil)
}

// closeGates applies the decisions about calls that wait for a person.
func (x *execution) closeGates() error {
	for i := range x.rec.Steps {
		if x.rec.Steps[i].State != StepGated {
			continue
		}
		g := x.rec.Gates[x.rec.Steps[i].Gate-1]
		entry := contract.RunEvent{StepID: g.StepID, Action: g.Action, Effect: string(policy.Gate), Rule: g.Rule, By: g.DecidedBy, Detail: g.Comment}
		var err error
		switch {
		case g.Decision == contract.GateApprove:
			if err = x.audit(EventGateApproved, entry); err == nil && !x.rec.State.Terminal() {
				err = x.advance(EventGateApproved, entry, func(r *Record) { r.Steps[i].State, r.Steps[i].Approved = StepPending, true })
			}
		case g.Decision == contract.GateDeny:
			err = x.block(EventGateDenied, entry, contract.RunError{
				Reason: contract.ReasonGateDenied, StepID: g.StepID, Message: fmt.Sprintf("the call of %s was denied by %s", g.Action, g.DecidedBy),
			}, nil)
		case !x.o.cfg.Now().Before(g.ExpiresAt):
			err = x.block(EventGateExpired, entry, contract.RunError{
				Reason: contract.ReasonGateExpired, StepID: g.StepID, Message: fmt.Sprintf("there was no decision about the call of %s in time", g.Action),
			}, func(r *Record) { r.Gates[r.Steps[i].Gate-1].Decision = contract.GateExpired })
		}
		if err != nil || x.rec.State.Terminal() {
			return err
		}
	}
	return nil
}

// audit writes an event of the policy to the audit log. If that fails, it ends the run.
func (x *execution) audit(event Event, entry contract.RunEvent) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.parent), writeTimeout)
	defer cancel()
	entry.Event, entry.At, entry.State = string(event), x.o.cfg.Now(), string(StateExecute)
	if err := x.o.cfg.Auditor.RecordRunEvent(ctx, x.record(), entry); err != nil {
		return x.fail(EventAborted, contract.RunError{
			Reason: contract.ReasonAuditUnavailable, StepID: entry.StepID, Message: "the audit log cannot be written, so the call was not made",
		})
	}
	return nil
}

// block ends the run because a call is not permitted.
func (x *execution) block(event Event, entry contract.RunEvent, failure contract.RunError, change func(*Record)) error {
	if err := x.audit(event, entry); err != nil || x.rec.State.Terminal() {
		return err
	}
	return x.apply(func(r *Record) error {
		if change != nil {
			change(r)
		}
		r.Reason, r.Errors = failure.Reason, append(r.Errors, failure)
		return r.Advance(event, entry, x.o.cfg.Now())
	})
}

// park lets the run wait for a person without a process, unless it has been cancelled or a
// decision has been made meanwhile.
func (x *execution) park() error {
	return x.apply(func(r *Record) error {
		if r.CancelledBy != "" {
			return nil // apply cancels the context, which ends the run
		}
		for i := range r.Steps {
			if s := &r.Steps[i]; s.State == StepGated && r.Gates[s.Gate-1].Decision != "" {
				return nil // the next execute applies it
			}
		}
		r.Owner, r.ParkedAt = "", x.o.cfg.Now().UTC()
		return nil
	})
}
