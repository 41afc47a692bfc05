package mcptarget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
)

// Call is a call of a tool for a task.
type Call struct {
	Action contract.Action
	Agent  *contract.RegistryEntry // whose task it is
	Caller *contract.Caller        // who is entitled to the agent
	Task   *contract.Task
}

// Invoker calls tools. Errors are *contract.ActionError, or that of the context if it was
// cancelled.
type Invoker interface {
	InvokeForTask(ctx context.Context, call *Call) (*contract.ActionResult, error)
}

// Target sends tasks to tools. It is safe for concurrent use.
type Target struct {
	invoker Invoker
	log     *slog.Logger
}

var _ dispatch.Target = (*Target)(nil)

// New returns a Target. A nil logger is silent.
func New(invoker Invoker, logger *slog.Logger) (*Target, error) {
	if invoker == nil {
		return nil, errors.New("mcptarget: an invoker is required")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Target{invoker: invoker, log: logger}, nil
}

// Execute calls the tool of the agent and returns the outcome.
func (t *Target) Execute(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	policy := attempt.NewPolicy(ctx, c, time.Now())
	ctx, cancel := policy.WithDeadline(ctx)
	defer cancel()
	call := &toolCall{invoker: t.invoker, Call: c, policy: policy}
	attempts, failure := 0, call.prepare(ctx)
	if failure == nil {
		attempts, failure = policy.Run(ctx, call.send)
	}
	if failure == nil {
		return dispatch.Outcome{Result: call.result, Attempts: policy.Previous + attempts, Health: dispatch.HealthGood}
	}
	level := slog.LevelWarn
	if failure.Code == contract.TaskWasCancelled {
		level = slog.LevelDebug
	}
	attributes := []any{
		"agent", c.Agent.ID, "task_id", c.Task.TaskID, "trace_id", c.Task.TraceID,
		"attempts", attempts, "code", failure.Code, "detail", failure.Detail, "action", c.Agent.Endpoint.Action,
	}
	if e, ok := errors.AsType[*contract.ActionError](failure.Cause); ok && e.Suggestion != "" {
		attributes = append(attributes, "suggestion", e.Suggestion)
	}
	t.log.Log(ctx, level, "task not done", attributes...)
	return policy.Outcome(attempts, failure)
}

// toolCall is the state of one Execute. It belongs to the goroutine that calls Execute.
type toolCall struct {
	dispatch.Call
	invoker Invoker
	policy  *attempt.Policy
	input   []byte
	result  *contract.Result
}

func (c *toolCall) prepare(ctx context.Context) *attempt.Error {
	if ctx.Err() != nil {
		return c.policy.Ended(ctx, false)
	}
	var err error
	if c.input, err = buildInput(&c.Task, c.Agent.Endpoint.Arguments); err != nil {
		return c.policy.NotSent(c.Agent.ID+" cannot be called: "+err.Error(), err)
	}
	return nil
}

// send is the n-th attempt of the call.
func (c *toolCall) send(ctx context.Context, n int) *attempt.Error {
	limits := c.policy.Limits(time.Now(), n)
	if limits.ReplyBy.Before(c.policy.ReplyBy) { // otherwise ctx ends at that time already
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, limits.ReplyBy)
		defer cancel()
	}
	result, err := c.invoker.InvokeForTask(ctx, &Call{
		Action: contract.Action{
			Action: c.Agent.Endpoint.Action, Input: c.input,
			Context: contract.ActionContext{SessionID: c.Task.SessionID, Locale: c.Task.Locale, TraceID: c.Task.TraceID},
		},
		Agent: c.Agent, Caller: c.Caller, Task: &c.Task,
	})
	failed, ok := errors.AsType[*contract.ActionError](err)
	switch {
	case ok:
		return c.mapError(failed)
	case err != nil:
		return c.policy.Ended(ctx, true)
	}
	if size := len(result.Content) + len(result.Structured); size > maxResult {
		return c.policy.BadResult(fmt.Sprintf("sent more than the %d bytes a Result may have", maxResult), nil)
	}
	c.result = newResult(c.Task.TaskID, result)
	return nil
}

// describeMissing returns which of the required arguments the request has no value for. It returns
// "" unless that is so for all of them: an argument that the registry does not map is no mistake of
// the caller.
func (c *toolCall) describeMissing(required []string) string {
	var missing []string
	for _, name := range slices.Sorted(slices.Values(required)) {
		a, mapped := c.Agent.Endpoint.Arguments[name]
		if value, err := argumentValue(&c.Task, &a); !mapped || err != nil || value != nil {
			return ""
		}
		if a.From == contract.FromPrompt || a.From == contract.FromSubtask {
			missing = append(missing, name+": the prompt has none")
		} else {
			missing = append(missing, name+": the request has no "+a.From)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "needs a value for " + strings.Join(missing, "; and for ")
}

// maxResult bounds a Result, as in package httptarget.
const maxResult = 4 << 20

// mapError returns the failure for an error, nil if it is a Result.
func (c *toolCall) mapError(e *contract.ActionError) *attempt.Error {
	switch e.Code {
	case contract.ActionUnavailable:
		f := c.policy.Unreachable(e.Message, e)
		f.Retry = false // the gateway has tried again
		return f
	case contract.ActionTimeout: // of a tool that can be called again
		return &attempt.Error{
			Code: contract.TaskDeadlineExceeded, Detail: c.Agent.ID + " did not answer in time", Cause: e, Health: c.policy.TimeoutHealth(),
		}
	case contract.ActionOutcomeUnknown:
		return c.policy.Unanswered("did not answer", e)
	case contract.ActionRateLimited:
		return c.policy.Busy("is called too often", time.Duration(e.RetryAfterMS)*time.Millisecond)
	case contract.ActionBadResult:
		return c.policy.BadResult("sent a result that is not valid: "+e.Message, e)
	case contract.ActionNotRecorded:
		return c.policy.NotSent(e.Message, e)
	case contract.ActionInvalidInput, contract.ActionForbidden, contract.ActionNotFound, contract.ActionAmbiguous, contract.ActionQuarantined:
		f := c.policy.Rejected("cannot be called: " + e.Message)
		if why := c.describeMissing(e.Missing); why != "" {
			f = c.policy.InvalidInput(why)
		}
		f.Cause = e
		return f
	}
	c.result = newFailure(c.Task.TaskID, e)
	return nil
}
