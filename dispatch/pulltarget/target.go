package pulltarget

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
	"github.com/caprouter/caprouter/internal/requests"
)

// Target offers tasks to agents that pull them. The zero value is ready for use. A task
// is cancelled at the agent by the reply to its next heartbeat.
type Target struct{}

var _ dispatch.Target = Target{}

// Execute implements dispatch.Target. Only Call.AwaitResult, which is to call
// Offers.Await, finds out if the agent gets the task.
func (Target) Execute(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	policy := attempt.NewPolicy(ctx, c, time.Now())
	switch {
	case ctx.Err() != nil:
		return policy.Outcome(0, policy.Ended(ctx, false))
	case c.AwaitResult == nil:
		return policy.Outcome(0, policy.NotSent(c.Agent.ID+" pulls its tasks, and a later result is not awaited", nil))
	}
	return dispatch.Outcome{Pending: true, Health: dispatch.HealthLater}
}

// NewPull returns the limits of a task that is offered now.
func NewPull(ctx context.Context, c dispatch.Call, now time.Time) *requests.Pull {
	beginBy, dueBy := attempt.NewPolicy(ctx, c, now).PullLimits(now)
	return &requests.Pull{BeginBy: beginBy.UTC(), DueBy: dueBy.UTC()}
}
