package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// preparedCall is a step whose call may be made now.
type preparedCall struct {
	step    int // index into the plan
	plan    *contract.PlanStep
	tool    *Tool // nil if it is not listed any more
	input   json.RawMessage
	verdict policy.Verdict
}

// execute makes the calls of all steps that can be called now.
func (x *execution) execute(ctx context.Context) error {
	if err := x.ensureTools(ctx); err != nil {
		return x.abort(ctx, err)
	}
	for _, prepare := range []func() error{x.closeInterrupted, x.closeGates} {
		if err := prepare(); err != nil || x.rec.State.Terminal() {
			return err
		}
	}
	calls, err := x.prepareCalls(ctx)
	if err != nil || x.rec.State != StateExecute || ctx.Err() != nil {
		return err // the end of the context ends the run
	}
	if len(calls) == 0 && x.rec.hasGatedStep() {
		return x.park()
	}
	errs := make([]error, len(calls))
	run.ForEach(ctx, x.o.cfg.Parallel, len(calls), func(ctx context.Context, i int) { errs[i] = x.call(ctx, &calls[i]) })
	if err := errors.Join(errs...); err != nil {
		if errors.Is(err, errStopped) {
			return errStopped
		}
		return err
	}
	if ctx.Err() != nil || x.rec.State != StateExecute {
		return nil //nolint:nilerr // the end of the context ends the run
	}
	return x.advance(EventCallsEnded, contract.RunEvent{}, nil)
}

// closeInterrupted ends the calls that the previous process of this run has started: a
// call that may be repeated is made again, the outcome of another one is not known.
func (x *execution) closeInterrupted() error {
	for i := range x.rec.Steps {
		if x.rec.Steps[i].State != StepCalling {
			continue
		}
		if x.rec.Steps[i].Repeatable {
			if err := x.apply(func(r *Record) error { r.Steps[i].State = StepPending; return nil }); err != nil {
				return err
			}
			continue
		}
		failure := &contract.ActionError{
			Code: contract.ActionOutcomeUnknown, Severity: contract.SeveritySevere,
			Message:    "the process ended during the call, which may have been executed and must not be repeated",
			Suggestion: "find out whether it was executed",
		}
		s := &x.rec.Plan.Steps[i]
		err := x.endCall(i, EventCallUnknown, StepUnknown, contract.ReasonOutcomeUnknown, contract.ToolOutput{
			StepID: s.ID, Action: s.Action, Status: contract.OutputUnknown, Arguments: s.Arguments, Error: failure,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prepareCalls returns the calls that may be made now. The policy judges all of them before
// the first one is made, each with the ones before it.
func (x *execution) prepareCalls(ctx context.Context) ([]preparedCall, error) {
	done, values, earlier := x.rec.done(), x.rec.values(), x.rec.Outputs
	var calls []preparedCall
	for i := range x.rec.Plan.Steps {
		s := &x.rec.Plan.Steps[i]
		if x.rec.Steps[i].State != StepPending || !isReady(s, done) {
			continue
		}
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr // the end of the context ends the run
		}
		input, err := resolveArguments(s.Arguments, values)
		if err != nil {
			if err := x.failReference(i, s, err); err != nil {
				return nil, err
			}
			continue
		}
		call := preparedCall{step: i, plan: s, tool: x.tools.tool(s.Action), input: input}
		call.verdict = x.judge(&call, earlier)
		ready, err := x.admit(&call)
		if err != nil || x.rec.State != StateExecute {
			return nil, err
		}
		if ready {
			calls = append(calls, call)
			earlier = append(slices.Clip(earlier), contract.ToolOutput{StepID: s.ID, Action: s.Action, Plan: x.rec.Plans, Arguments: input})
		}
	}
	return calls, nil
}

// failReference ends a step with a reference that cannot be replaced by a value.
func (x *execution) failReference(i int, s *contract.PlanStep, err error) error {
	failure := &contract.ActionError{Code: contract.ActionInvalidInput, Severity: contract.SeverityWarning, Message: "the arguments cannot be completed: " + err.Error()}
	if missing, ok := errors.AsType[*referenceError](err); ok {
		failure.Details = []contract.ErrorDetail{{Pointer: missing.pointer, Detail: missing.Error()}}
	}
	return x.endCall(i, EventCallError, StepFailed, contract.ReasonSchemaInvalid, contract.ToolOutput{
		StepID: s.ID, Action: s.Action, Status: contract.OutputError, Arguments: s.Arguments, Error: failure,
	})
}

// errNoRetries ends the attempts of a call.
var errNoRetries = errors.New("the budget of retries is used up")

// call makes the attempts of a call. The record states that a call is about to be made
// before it is.
func (x *execution) call(ctx context.Context, c *preparedCall) error {
	repeatable := c.tool != nil && c.tool.Repeatable
	out := contract.ToolOutput{StepID: c.plan.ID, Action: c.plan.Action, Arguments: c.input}
	start := time.Now()
	backoff := resilience.Backoff{Min: 200 * time.Millisecond, Max: 5 * time.Second}
	for {
		if ctx.Err() != nil || x.o.isDraining() {
			return errUnlessEnded(ctx)
		}
		out.Attempts++
		if err := x.startCall(c, out.Attempts, repeatable); errors.Is(err, errNoRetries) {
			out.Attempts--
			return x.endCall(c.step, EventCallError, StepFailed, contract.ReasonRetryBudget, out)
		} else if err != nil {
			return err
		}
		result, err := x.invoke(ctx, c)
		out.LatencyMS = time.Since(start).Milliseconds()
		if err == nil {
			out.Status, out.Result, out.Error = contract.OutputOK, result, nil
			return x.endCall(c.step, EventCallOK, StepDone, "", out)
		}
		failure, ok := errors.AsType[*contract.ActionError](err)
		if !ok { // the context has ended
			if repeatable || x.isStopping() {
				return nil // the next process continues, or the run ends
			}
			failure = &contract.ActionError{Code: contract.ActionOutcomeUnknown, Severity: contract.SeveritySevere, Message: "the call was cancelled, and may have been executed"}
		}
		out.Error, out.Status = failure, contract.OutputError
		reason, again := classifyFailure(failure, repeatable)
		switch {
		case reason == contract.ReasonOutcomeUnknown:
			out.Status = contract.OutputUnknown
			return x.endCall(c.step, EventCallUnknown, StepUnknown, reason, out)
		case !again:
			return x.endCall(c.step, EventCallError, StepFailed, reason, out)
		}
		if !repeatable { // but it was not made, which the next process must know if this one stops
			if err := x.apply(func(r *Record) error { r.Steps[c.step].State = StepPending; return nil }); err != nil {
				return err
			}
		}
		resilience.Sleep(ctx, max(backoff.Next(), time.Duration(failure.RetryAfterMS)*time.Millisecond))
	}
}

// isStopping reports whether the process stops, so that another one continues the run.
func (x *execution) isStopping() bool {
	return x.parent.Err() != nil && !errors.Is(context.Cause(x.parent), ErrCancelled)
}

// errUnlessEnded returns errStopped if the process drains, nil if the end of the context
// is the reason.
func errUnlessEnded(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it ends the run
	}
	return errStopped
}

// maxOutput bounds a result, because the record contains it.
const maxOutput = 1 << 20

// invoke makes one attempt of a call. The error is an *contract.ActionError unless ctx has
// ended.
func (x *execution) invoke(ctx context.Context, c *preparedCall) (*contract.ActionResult, error) {
	rec := x.record()
	result, err := x.o.cfg.Invoker.Invoke(ctx, &Call{
		RunID: rec.ID, RequestID: rec.RequestID, TraceID: rec.TraceID, StepID: c.plan.ID, Caller: &rec.Caller, Agent: rec.Agent, Restricted: rec.Restricted,
		Action: c.plan.Action, Input: c.input,
	})
	if err == nil && len(result.Content)+len(result.Structured) > maxOutput {
		err = &contract.ActionError{Code: contract.ActionBadResult, Severity: contract.SeveritySevere, Message: fmt.Sprintf("the result is larger than %d bytes", maxOutput)}
	}
	return result, err
}

// classifyFailure returns the reason of a step whose call has failed, and whether the call may be
// repeated.
func classifyFailure(e *contract.ActionError, repeatable bool) (reason contract.RunReason, again bool) {
	switch e.Code {
	case contract.ActionOutcomeUnknown:
		return contract.ReasonOutcomeUnknown, false
	case contract.ActionInvalidInput, contract.ActionBadResult:
		return contract.ReasonSchemaInvalid, false
	case contract.ActionNotRecorded:
		return contract.ReasonAuditUnavailable, false
	case contract.ActionUnavailable, contract.ActionRateLimited: // it was not called
		return contract.ReasonRetryBudget, true
	case contract.ActionNotFound, contract.ActionAmbiguous, contract.ActionForbidden, contract.ActionQuarantined:
		return contract.ReasonCallFailed, false
	}
	return contract.ReasonCallFailed, repeatable // TIMEOUT is of a call that may be repeated
}

// startCall stores that a call is about to be made.
func (x *execution) startCall(c *preparedCall, attempt int, repeatable bool) error {
	event, entry := EventCallStarted, contract.RunEvent{StepID: c.plan.ID, Action: c.plan.Action}
	if attempt > 1 {
		event, entry.Detail = EventCallRetried, fmt.Sprintf("attempt %d", attempt)
	}
	return x.apply(func(r *Record) error {
		if attempt > 1 {
			if r.Retries >= x.o.cfg.Budgets.Retries {
				return errNoRetries
			}
			r.Retries++
		}
		s := &r.Steps[c.step]
		s.State, s.Repeatable = StepCalling, repeatable
		s.Attempts++
		r.Calls++
		return r.Advance(event, entry, x.o.cfg.Now())
	})
}

// endCall stores the outcome of a call.
func (x *execution) endCall(step int, event Event, state StepState, reason contract.RunReason, out contract.ToolOutput) error {
	entry := contract.RunEvent{StepID: out.StepID, Action: out.Action}
	if out.Error != nil {
		entry.Detail = out.Error.Code
	}
	return x.apply(func(r *Record) error {
		s := &r.Steps[step]
		s.State, s.Reason = state, reason
		out.Plan, out.Attempts = r.Plans, max(out.Attempts, s.Attempts)
		r.Outputs = append(r.Outputs, out)
		return r.Advance(event, entry, x.o.cfg.Now())
	})
}
