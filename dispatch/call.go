package dispatch

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Call is one task for one agent.
type Call struct {
	Agent  *contract.RegistryEntry
	Caller *contract.Caller // on whose behalf
	// Task is what the agent receives. Its Deadline is the request's; the target
	// sets Attempt and narrows Deadline for each try.
	Task contract.Task
	// Others counts the agents that may still take over if this one does not
	// deliver: they get their share of the time that remains.
	Others int
}

// Outcome is what came of a Call: a Result or an Err, never both.
type Outcome struct {
	Result   *contract.Result
	Err      *contract.TaskError
	Attempts int           // tries that were begun
	Latency  time.Duration // of the whole Send, waiting included
	// Uncertain means that the agent may have done the work, or may still do it,
	// and must not do it twice: the task is never given to another agent.
	Uncertain bool
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
	// context always has a deadline.
	Do(ctx context.Context, c Call) Outcome
}

// unavailable is the outcome of a task that was not given out.
func unavailable(detail string) Outcome {
	return Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: detail}}
}
