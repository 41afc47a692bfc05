package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// ErrHandedOver is the cause of the end of a context whose task is left to another
// process: the agent goes on with it and is not told to stop. A task that was
// sent, and not answered, is Later.
var ErrHandedOver = errors.New("the task was handed back")

// handedOver reports whether ctx has ended with ErrHandedBack.
func handedOver(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrHandedOver) }

// Call is one task for one agent.
type Call struct {
	Agent  *contract.RegistryEntry
	Caller *contract.Caller // on whose behalf
	// Task is what the agent receives. Its Deadline is the request's, which the
	// target narrows for each try. Its Attempt is the number of the first try, 0
	// meaning 1: a task that is given out once more goes on counting.
	Task contract.Task
	// Others counts the agents that may still take over if this one does not
	// deliver: they get their share of the time that remains.
	Standbys int
	// Commit, where set, is called once, when nothing but the agent itself can
	// refuse the task any more and before a byte of it goes out. Its error means
	// that the task is not given out.
	BeforeSend func(ctx context.Context) error
	// Await, where set, lets the agent accept the task now and deliver its Result
	// later. It returns what was delivered, or why nothing will be, by the
	// context's end. An Outcome that is still Later hands the waiting on to
	// somebody else: the agent is not told to stop.
	AwaitResult func(ctx context.Context) Outcome
}

// Outcome is what came of a Call: a Result or an Err, never both. Neither is
// there as long as it is Later.
type Outcome struct {
	Result   *contract.Result
	Err      *contract.TaskError
	Pending  bool          // the Result may still come; see Call.Await and ErrHandedBack
	Attempts int           // the number of the last try that was begun; 0 = none
	Latency  time.Duration // of the whole Send, waiting included
	// Uncertain means that the agent may have done the work, or may still do it,
	// and must not do it twice: the task is never given to another agent.
	MayHaveExecuted bool
	// Health is what the outcome says about the agent itself.
	Health Health
}

// Health is what an outcome says about an agent, for its breaker.
type Health uint8

// The values of Health.
const (
	// HealthUnknown: nothing. The task was cancelled or never sent, or the agent
	// did not get the time to answer.
	HealthUnknown Health = iota
	// HealthGood: the agent does its part. A Result that says failure and a
	// refusal are answers too.
	HealthGood
	// HealthBad: it could not be reached, broke off, failed, kept silent, or
	// answered what is no Result.
	HealthBad
)

// Target reaches the agents of one protocol.
type Target interface {
	// Do gives the task to the agent and returns what came of it, by the
	// context's deadline. All retries are made here and nowhere else. The
	// context always has a deadline. An Outcome is Later only where the Call has
	// an Await. When the context ends with ErrHandedBack, a task that was sent is
	// cancelled, without telling the agent, and one that was not is unavailable.
	Execute(ctx context.Context, c Call) Outcome
}

// Canceler is a Target that can tell an agent to stop.
type Canceler interface {
	// Stop tells the agent that nobody waits for the task any more. It does not
	// wait until the agent has heard of it.
	CancelTask(c Call)
}

// unavailable is the outcome of a task that was not given out.
func unavailable(detail string) Outcome {
	return Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: detail}}
}
