package orchestrator

import (
	"cmp"
	"context"
	"fmt"

	"github.com/caprouter/caprouter/contract"
)

// observe decides what follows from the outputs.
func (x *execution) observe() error {
	var failed *contract.RunError
	unknown, pending := false, false
	for i := range x.rec.Steps {
		switch s := &x.rec.Steps[i]; s.State {
		case StepFailed, StepUnknown:
			if failed == nil || s.State == StepUnknown && !unknown {
				failed = x.stepError(i)
			}
			unknown = unknown || s.State == StepUnknown
		case StepPending, StepGated:
			pending = true
		case StepCalling, StepDone:
		}
	}
	switch {
	case failed != nil && !unknown && x.mayReplan(x.rec.Plans):
		return x.replan(*failed)
	case failed != nil:
		return x.fail(EventStepsFailed, *failed)
	}
	if findings := x.unmetSoFar(); len(findings) > 0 {
		return x.advance(EventStepsStopped, contract.RunEvent{StepID: findings[0].StepID, Detail: findings[0].Detail}, nil)
	}
	if pending {
		return x.advance(EventNextSteps, contract.RunEvent{}, nil)
	}
	return x.advance(EventStepsDone, contract.RunEvent{}, nil)
}

// unmetSoFar returns the criteria of steps with an output that the output does not meet.
func (x *execution) unmetSoFar() []Finding {
	outputs := outputsByStep(x.rec.planOutputs())
	var findings []Finding
	for i := range x.rec.Plan.Steps {
		if s := &x.rec.Plan.Steps[i]; outputs[s.ID] != nil {
			findings = append(findings, unmetCriteria(i, s, outputs[s.ID])...)
		}
	}
	return findings
}

// stepError returns why a step has failed.
func (x *execution) stepError(i int) *contract.RunError {
	id := x.rec.Plan.Steps[i].ID
	e := &contract.RunError{Reason: x.rec.Steps[i].Reason, StepID: id, Message: "the call has failed"}
	for _, out := range x.rec.planOutputs() {
		if out.StepID == id && out.Error != nil {
			e.Code, e.Message, e.Suggestion = out.Error.Code, out.Error.Message, out.Error.Suggestion
			for _, d := range out.Error.Details {
				d.Pointer = fmt.Sprintf("/steps/%d/arguments%s", i, d.Pointer)
				e.Details = append(e.Details, d)
			}
		}
	}
	return e
}

// replan asks for another plan because of a failure. It closes the gates of the present
// one.
func (x *execution) replan(failure contract.RunError) error {
	return x.advance(EventReplan, contract.RunEvent{StepID: failure.StepID, Detail: failure.Message}, func(r *Record) {
		r.Errors = append(r.Errors, failure)
		for i := range r.Gates {
			r.Gates[i].Decision = cmp.Or(r.Gates[i].Decision, contract.GateExpired)
		}
	})
}

// verify decides whether the goal is reached.
func (x *execution) verify(ctx context.Context) error {
	req := &VerifyRequest{Goal: x.rec.Goal.Goal, Plan: x.rec.Plan, Outputs: x.rec.planOutputs()}
	verdict, err := Deterministic{}.Verify(ctx, req) // the criteria hold for every verifier
	if err == nil && verdict.Passed && x.rec.Verifier.Kind != contract.VerifierDeterministic {
		var verifier Verifier
		if verifier, err = x.o.cfg.Models.Verifier(&x.rec.Goal.Constraints); err == nil {
			verdict, err = verifier.Verify(ctx, req)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of the context ends the run
		}
		x.o.cfg.Logger.Error("the verifier has failed", "orchestration_id", x.rec.ID, "error", err)
		return x.fail(EventVerifierError, contract.RunError{Reason: contract.ReasonVerifierFailed, Message: "the verifier did not decide"})
	}
	if verdict.Passed {
		return x.advance(EventVerifyOK, contract.RunEvent{}, nil)
	}
	failure := contract.RunError{Reason: contract.ReasonVerificationFailed, Message: "the outputs do not reach the goal"}
	for i, f := range verdict.Findings {
		if i == 0 {
			failure.StepID = f.StepID
		}
		failure.Details = append(failure.Details, contract.ErrorDetail{Pointer: f.Pointer, Detail: f.Detail})
	}
	if x.mayReplan(x.rec.Plans) {
		return x.replan(failure)
	}
	return x.fail(EventVerifyFailed, failure)
}
