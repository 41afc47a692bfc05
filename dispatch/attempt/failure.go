package attempt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

// Error describes an attempt without a Result.
type Error struct {
	Code            contract.TaskCode
	Detail          string // for the caller: contains no address and no text of a library
	Cause           error  // for the log; may be nil
	Address         string // for operators: the URL that was called, without credentials
	Reply           string // for operators: the beginning of the reply, masked
	MayHaveExecuted bool   // see dispatch.Outcome
	Abandoned       bool   // the agent may still execute the task, so it should be cancelled
	Retry           bool   // the task may be sent again, and that may succeed
	RetryAfter      time.Duration
	Health          dispatch.Health

	silent bool // an idempotent agent did not answer within its share of the time
}

// Error implements error.
func (f *Error) Error() string { return fmt.Sprintf("%s: %s: %v", f.Code, f.Detail, f.Cause) }

// Unwrap returns the cause.
func (f *Error) Unwrap() error { return f.Cause }

// NotSent returns the failure of a task that the router could not send. It does
// not count for the health of the agent.
func (p *Policy) NotSent(detail string, cause error) *Error {
	return &Error{Code: contract.TaskAgentUnavailable, Detail: detail, Cause: cause}
}

// Unreachable returns the failure of an agent that could not be connected to.
func (p *Policy) Unreachable(reason string, cause error) *Error {
	return &Error{
		Code: contract.TaskAgentUnavailable, Detail: p.AgentID + " could not be reached: " + reason, Cause: cause,
		Retry: true, Health: dispatch.HealthBad,
	}
}

// Rejected returns the failure of a task that the agent refuses. The agent works
// as it should, so this counts as healthy.
func (p *Policy) Rejected(what string) *Error {
	return &Error{Code: contract.TaskAgentUnavailable, Detail: p.AgentID + " " + what, Health: dispatch.HealthGood}
}

// InvalidInput returns the failure of a task that lacks something that the agent needs.
func (p *Policy) InvalidInput(what string) *Error {
	return &Error{Code: contract.TaskInvalidInput, Detail: p.AgentID + " " + what, Health: dispatch.HealthGood}
}

// Busy returns the failure of a task that an overloaded agent has not begun.
func (p *Policy) Busy(what string, retryAfter time.Duration) *Error {
	return &Error{
		Code: contract.TaskAgentUnavailable, Detail: p.AgentID + " " + what,
		Retry: p.idempotent, RetryAfter: retryAfter,
	}
}

// Unanswered returns the failure of an attempt after which it is unknown if the
// agent has done the work.
func (p *Policy) Unanswered(what string, cause error) *Error {
	f := &Error{
		Code: contract.TaskAgentUnavailable, Detail: p.AgentID + " " + what, Cause: cause,
		Retry: p.idempotent, Health: dispatch.HealthBad,
	}
	if !p.idempotent {
		f.Code, f.MayHaveExecuted = contract.TaskOutcomeUnknown, true
		f.Detail += ": it may have done the task"
	}
	return f
}

// BadResult returns the failure of an agent that replied, but not with a Result.
func (p *Policy) BadResult(what string, cause error) *Error {
	return &Error{
		Code: contract.TaskBadResult, Detail: p.AgentID + " " + what, Cause: cause,
		MayHaveExecuted: !p.idempotent, Health: dispatch.HealthBad,
	}
}

// Ended returns the failure of an attempt whose context ended: its deadline
// passed or it was cancelled. If part of the task was sent, sent is true.
func (p *Policy) Ended(ctx context.Context, sent bool) *Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return p.cancelled(context.Cause(ctx), sent)
	}
	if sent {
		f := p.TimedOut()
		f.Cause = context.Cause(ctx)
		return f
	}
	f := &Error{
		Code: contract.TaskDeadlineExceeded, Detail: "the deadline passed before the task was sent to " + p.AgentID,
		Cause: context.Cause(ctx), Health: p.TimeoutHealth(),
	}
	if time.Now().Before(p.ReplyBy) { // only the share of this attempt is used up
		f.Code, f.Retry = contract.TaskAgentUnavailable, true
		f.Detail = p.AgentID + " could not be reached: it could not be connected to in time"
	}
	return f
}

func (p *Policy) cancelled(cause error, sent bool) *Error {
	handedOver := errors.Is(cause, dispatch.ErrHandedOver)
	if handedOver && !sent {
		return p.NotSent("the router stopped before the task was sent to "+p.AgentID, cause)
	}
	f := &Error{
		Code: contract.TaskWasCancelled, Detail: "the caller disconnected", Cause: cause,
		MayHaveExecuted: sent && !p.idempotent, Abandoned: sent && !handedOver,
	}
	if !errors.Is(cause, context.Canceled) {
		f.Detail = "the router stopped the task" // the cause is logged
	}
	return f
}

// NotPulled returns the failure of a task that its agent did not pull in its share of the
// time.
func (p *Policy) NotPulled() *Error {
	return &Error{
		Code: contract.TaskAgentUnavailable, Detail: p.AgentID + " did not pull the task in time", Health: p.TimeoutHealth(),
	}
}

// LeasesExhausted returns the failure of a task that an idempotent agent pulled, and did
// not finish, as often as permitted.
func (p *Policy) LeasesExhausted(what string) *Error {
	return &Error{Code: contract.TaskDeadlineExceeded, Detail: p.AgentID + " " + what, Health: dispatch.HealthBad}
}

// TimedOut returns the failure of an agent that has the task and sent no result in time.
func (p *Policy) TimedOut() *Error {
	f := &Error{
		Code: contract.TaskDeadlineExceeded, Detail: p.AgentID + " did not answer in time", Health: p.TimeoutHealth(),
		Abandoned: true, Retry: p.idempotent, MayHaveExecuted: !p.idempotent, silent: p.idempotent,
	}
	if !p.idempotent {
		f.Code = contract.TaskOutcomeUnknown
		f.Detail = p.AgentID + " was sent the task and did not answer by the deadline: it may have done it"
	}
	return f
}

// describeShares adds the time that each of several attempts was given, because an agent may need
// less than its timeout, but more than a share of it.
func (f *Error) describeShares(given []time.Duration) {
	if !f.silent || len(given) < 2 {
		return
	}
	times := make([]string, len(given))
	for i, d := range given {
		unit := 100 * time.Millisecond
		if d < time.Second {
			unit = 10 * time.Millisecond
		}
		times[i] = d.Truncate(unit).String()
	}
	f.Detail += fmt.Sprintf(": it had %s for %d attempts, which share the time of an idempotent agent", strings.Join(times, " and "), len(given))
}

// TimeoutHealth returns the health of an agent that did not reply in time: bad
// only if all attempts together gave it a fair time.
func (p *Policy) TimeoutHealth() dispatch.Health {
	if time.Since(p.start) >= p.fairTime {
		return dispatch.HealthBad
	}
	return dispatch.HealthUnknown
}
