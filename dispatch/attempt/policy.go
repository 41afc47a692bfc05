package attempt

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
)

const (
	// MaxAttempts is how often one agent is sent one task.
	MaxAttempts = 2
	// maxConnect bounds name lookup, connecting and the TLS handshake together.
	maxConnect = 3 * time.Second
	// retryBackoff is the jittered delay before the second attempt.
	retryBackoff = 50 * time.Millisecond
	// fairTime is how long an agent must have had before its silence counts as a
	// failure. Otherwise a caller with a timeout of 1 ms could open the circuit
	// breaker of a healthy agent for all callers.
	fairTime = time.Second
)

// Policy contains the limits of one call and decides how it fails. It is
// immutable.
type Policy struct {
	AgentID  string
	Previous int       // attempts of earlier calls for the same task
	Due      time.Time // the deadline of the task
	ReplyBy  time.Time // the deadline of the reply; earlier if the agent has a timeout of its own

	recheck    func() (reason string) // of the call; may be nil
	idempotent bool                   // the agent can be sent the task twice
	standbys   int                    // agents that can take over if this one fails
	start      time.Time
	fairTime   time.Duration
}

// NewPolicy returns the policy of a call that starts now.
func NewPolicy(ctx context.Context, call dispatch.Call, now time.Time) *Policy {
	endpoint := call.Agent.Endpoint
	p := &Policy{
		recheck: call.Recheck, AgentID: call.Agent.ID, Previous: max(call.Task.Attempt-1, 0),
		idempotent: endpoint.Idempotent, standbys: call.Standbys, start: now, fairTime: fairTime,
	}
	due, ok := ctx.Deadline()
	if !ok {
		due = now.Add(dispatch.DefaultTimeout)
	}
	p.Due = earlierOf(due, call.Task.Deadline)
	p.ReplyBy = p.Due
	if endpoint.TimeoutMS > 0 {
		timeout := time.Duration(endpoint.TimeoutMS) * time.Millisecond
		p.ReplyBy = earlierOf(p.Due, now.Add(timeout))
		// An attempt gets only a share of the agent's own timeout if others can
		// take over, so a quarter of it is fair.
		p.fairTime = min(fairTime, timeout/4)
	}
	return p
}

// earlierOf returns the earlier of a and b; a zero b is no limit.
func earlierOf(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// WithDeadline returns a context that ends when the agent must have replied.
func (p *Policy) WithDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && !p.ReplyBy.Before(deadline) {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, p.ReplyBy)
}

// Limits are the deadlines of one attempt.
type Limits struct{ ConnectBy, ReplyBy time.Time }

// Limits returns the deadlines of the n-th attempt of this call, counted from 1,
// if it starts now.
func (p *Policy) Limits(now time.Time, n int) Limits {
	share := p.ReplyBy.Sub(now) / time.Duration(MaxAttempts-n+1+p.standbys)
	limits := Limits{ConnectBy: now.Add(min(share, maxConnect)), ReplyBy: p.ReplyBy}
	if p.idempotent {
		limits.ReplyBy = now.Add(share)
	}
	return limits
}

// PullLimits returns the deadlines of a task that the agent pulls, if it is offered now.
// Until the agent has it, standbys need their share of the time, as while an agent is
// being connected to.
func (p *Policy) PullLimits(now time.Time) (beginBy, dueBy time.Time) {
	beginBy, dueBy = now.Add(p.ReplyBy.Sub(now)/time.Duration(1+p.standbys)), p.ReplyBy
	if p.idempotent {
		dueBy = beginBy
	}
	return beginBy, dueBy
}

// Run calls send until it succeeds or the policy allows no other attempt, and
// returns the number of attempts and the last failure. The context must have the
// deadline of the policy.
func (p *Policy) Run(ctx context.Context, send func(ctx context.Context, n int) *Error) (attempts int, failure *Error) {
	abandoned := false
	var given [MaxAttempts]time.Duration
	_ = resilience.Retry(ctx, resilience.RetryConfig{
		MaxAttempts: MaxAttempts,
		Backoff:     retryBackoff,
		Retryable:   func(error) bool { return p.shouldRetry(failure) },
		MinDelay:    func(error) time.Duration { return failure.RetryAfter },
	}, func(ctx context.Context, n int) error {
		if n > 1 && p.recheck != nil { // the registry may have changed since the first attempt
			if reason := p.recheck(); reason != "" {
				health := failure.Health
				failure = p.NotSent(reason, failure)
				failure.Health = health
				return failure
			}
		}
		attempts = n
		now := time.Now()
		given[n-1] = p.Limits(now, n).ReplyBy.Sub(now)
		if failure = send(ctx, n); failure == nil {
			return nil
		}
		abandoned = abandoned || failure.Abandoned
		return failure
	})
	if failure != nil {
		failure.describeShares(given[:attempts])
		// The process that takes over continues the task, so it must not be cancelled.
		failure.Abandoned = abandoned && !errors.Is(failure.Cause, dispatch.ErrHandedOver)
	}
	return attempts, failure
}

// shouldRetry reports whether another attempt may follow. If the agent requests
// a delay longer than its share of the time, a standby is the better choice.
func (p *Policy) shouldRetry(f *Error) bool {
	return f.Retry && f.RetryAfter <= time.Until(p.ReplyBy)/time.Duration(1+p.standbys)
}

// Outcome returns the outcome of a call that failed after a number of attempts.
func (p *Policy) Outcome(attempts int, f *Error) dispatch.Outcome {
	return dispatch.Outcome{
		Err:      &contract.TaskError{Code: f.Code, Detail: f.Detail, Address: f.Address, Reply: f.Reply},
		Attempts: p.Previous + attempts, MayHaveExecuted: f.MayHaveExecuted, Health: f.Health,
	}
}
