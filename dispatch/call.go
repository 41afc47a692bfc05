package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// ErrHandedOver is the cause with which a context ends if another process takes
// the task over: the agent continues and is not cancelled. The outcome of a task
// that was sent, and not answered, is Pending.
var ErrHandedOver = errors.New("the task was handed over to another process")

func handedOver(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrHandedOver) }

// Call is one task for one agent.
type Call struct {
	Agent  *contract.RegistryEntry
	Caller *contract.Caller // on whose behalf
	// Task is sent to the agent. Its Deadline is the request's; the target sets an
	// earlier one for each attempt. Its Attempt is the number of the first attempt,
	// which is above 1 if the task was sent before; 0 means 1.
	Task contract.Task
	// Token was minted for this task before; the zero value = Send mints one.
	Token Token
	// Divided means that the request has subtasks, so that the prompt in the inputs may also
	// ask for what other agents do.
	Divided bool
	// Standbys counts the agents that can take over if this one fails. They get
	// their share of the remaining time.
	Standbys int
	// MaskText masks personal data and secrets in a reply that is shown to
	// operators. If it is nil, no reply is shown.
	MaskText func(text string) string
	// Recheck, if set, is called after all admission checks and before each attempt to
	// send the task. It returns why the agent may not get the task any more, "" if it may.
	Recheck func() (reason string)
	// BeforeSend, if set, is called once after all admission checks and before any
	// byte of the task is sent. If it returns an error, the task is not sent.
	BeforeSend func(ctx context.Context) error
	// AwaitResult, if set, lets the agent accept the task and send its Result
	// later. It returns the result, or an error if none will come, by the deadline
	// of ctx. If its Outcome is Pending, another process waits for the result, and
	// the agent is not cancelled.
	AwaitResult func(ctx context.Context) Outcome
}

// MustResume reports whether the task was sent before, to an agent that is not idempotent: a
// target may wait for the work that began then, and must not begin it again.
func (c *Call) MustResume() bool { return c.Task.Attempt > 1 && !c.Agent.Endpoint.Idempotent }

// Outcome is the outcome of a Call: a Result, an Err, or Pending.
type Outcome struct {
	Result   *contract.Result
	Err      *contract.TaskError
	Pending  bool          // the Result may still come; see Call.AwaitResult and ErrHandedOver
	Attempts int           // the number of the last attempt; 0 = none
	Latency  time.Duration // of the whole Send, including waiting
	// MayHaveExecuted means that the agent may have done the work, or may still do
	// it, and is not idempotent: the task must not be given to another agent.
	MayHaveExecuted bool
	// Health counts for or against the agent's circuit breaker.
	Health Health
}

// Health is the effect of an outcome on the agent's circuit breaker.
type Health uint8

// The values of Health.
const (
	// HealthUnknown does not count: the task was cancelled or never sent, or the
	// agent had too little time to answer.
	HealthUnknown Health = iota
	// HealthGood counts as a success. A Result with status failure and a refusal
	// are valid answers, too.
	HealthGood
	// HealthBad counts as a failure: the agent was unreachable, closed the
	// connection, returned an error or no Result, or did not answer.
	HealthBad
	// HealthLater leaves the decision to the Outcome of AwaitResult: accepting the task
	// shows nothing about the agent. Only an Outcome that is Pending has it.
	HealthLater
)

// Target sends tasks to the agents of one protocol.
type Target interface {
	// Execute sends the task to the agent and returns its outcome by the deadline
	// of ctx, which is always set. It is the only place for retries. The Outcome is
	// Pending only if the Call has AwaitResult. If ctx ends with ErrHandedOver, the
	// outcome of a task that was sent is cancelled, without canceling it at the
	// agent, and that of any other task is agent_unavailable.
	Execute(ctx context.Context, c Call) Outcome
}

// Token is what an agent receives to verify that a task comes from the router.
type Token struct {
	Value   string
	KeyID   string // of the key that signed it
	Expires time.Time
}

// Preparer is a Target that can do part of its work for a task before the task may be sent.
type Preparer interface {
	// Prepare mints the token of a task, and may begin to connect to its agent in the
	// background. It sends nothing. It returns the zero value if it cannot mint the token:
	// Execute then reports why. The deadline of ctx is that of Execute.
	Prepare(ctx context.Context, c Call) Token
}

// Canceller is a Target that can cancel a task at the agent.
type Canceller interface {
	// CancelTask asks the agent to stop a task whose result is no longer awaited.
	// It does not wait for the request to arrive.
	CancelTask(c Call)
}

// unavailableOutcome returns the outcome of a task that was not sent.
func unavailableOutcome(detail string) Outcome {
	return Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: detail}}
}
