package pulltarget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/attempt"
	"github.com/caprouter/caprouter/internal/requests"
)

// Wait is a task that its agent pulls, in a stored record. All fields are required.
type Wait struct {
	Offer  Offer
	Call   dispatch.Call
	SentAt time.Time
	// Read returns the task as stored, or an error if it cannot be read now; nil if this
	// process does not execute the request any more.
	Read    func(ctx context.Context) (*requests.Task, error)
	Arrived <-chan struct{}        // closed when the result has arrived
	Refusal func() (reason string) // why the agent may not get the task any more, "" if it may
	// Changed returns a channel that is closed when the registry in force changes.
	Changed  func() <-chan struct{}
	Gone     func() bool // whether no instance of the agent can pull a task; cheap
	Announce func(Offer) // to the other processes
	Now      func() time.Time
}

// Intervals between two reads of a task whose record does not change. They grow, because many
// tasks may wait for a long time.
const (
	firstPollInterval = time.Second
	maxPollInterval   = 30 * time.Second
)

// Await offers the task to its agent, again if a lease expires and the agent is
// idempotent, until it has an outcome. arrived is true, and there is no outcome, if the
// result has arrived.
func (o *Offers) Await(ctx context.Context, w *Wait) (out dispatch.Outcome, arrived bool) {
	defer o.Remove(w.Offer)
	policy := attempt.NewPolicy(ctx, w.Call, w.SentAt)
	leases := 0
	for pause := firstPollInterval; ; pause = min(2*pause, maxPollInterval) {
		next, changed := w.Now().Add(pause), w.Changed()
		task, err := w.Read(ctx)
		switch {
		case err != nil: // try again after the pause
		case task == nil:
			return dispatch.Outcome{Pending: true}, false
		case task.State == requests.TaskDone:
			return dispatch.Outcome{Result: task.Result, Err: task.Err, MayHaveExecuted: task.Uncertain, Attempts: task.Attempts}, false // stored elsewhere
		default:
			leases = task.Pull.Leases
			failure, until := o.checkTask(w, policy, task)
			if failure != nil {
				return policy.Outcome(leases, failure), false
			}
			if until.Before(next) {
				next = until
			}
		}
		switch w.wait(ctx, max(next.Sub(w.Now()), minPollInterval), changed) {
		case waitArrived:
			return dispatch.Outcome{}, true
		case waitEnded:
			if errors.Is(context.Cause(ctx), dispatch.ErrHandedOver) {
				return dispatch.Outcome{Pending: true}, false
			}
			return policy.Outcome(leases, endedFailure(ctx, policy, leases)), false
		case waitDue:
		}
	}
}

// waitEnd is the reason why a wait has ended.
type waitEnd int

const (
	waitDue     waitEnd = iota // the task is to be checked again
	waitArrived                // its result has arrived
	waitEnded                  // the context has ended
)

// wait waits for the time, or until the last instance of the agent is gone, for as long as
// there is no result. changed is closed when the registry changes.
func (w *Wait) wait(ctx context.Context, d time.Duration, changed <-chan struct{}) waitEnd {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-w.Arrived:
			return waitArrived
		case <-ctx.Done():
			return waitEnded
		case <-timer.C:
			return waitDue
		case <-changed:
			changed = w.Changed()
			if w.Gone() {
				return waitDue
			}
		}
	}
}

// minPollInterval is the shortest wait, which prevents a busy loop if clocks differ.
const minPollInterval = 10 * time.Millisecond

// checkTask offers a task that its agent may get, and returns when to check it again, or why the
// task is given up.
func (o *Offers) checkTask(w *Wait, policy *attempt.Policy, task *requests.Task) (failure *attempt.Error, until time.Time) {
	now := w.Now()
	phase, until := task.PhaseAt(now)
	switch {
	case phase == requests.PullMissed:
		return policy.NotPulled(), until
	case phase == requests.PullLost:
		return policy.Unanswered("pulled the task and did not renew its lease", nil), until
	case phase == requests.PullExhausted:
		return policy.LeasesExhausted(fmt.Sprintf("pulled the task %d times, and never finished it before its lease expired", task.Pull.Leases)), until
	case !now.Before(task.Pull.DueBy): // of an agent with a timeout of its own
		return policy.TimedOut(), until
	case phase == requests.PullLeased:
		o.Remove(w.Offer)
		return nil, minTime(until, task.Pull.DueBy)
	}
	if reason := w.Refusal(); reason != "" {
		return policy.NotSent(reason, nil), until
	}
	o.Add(w.Offer)
	w.Announce(w.Offer)
	return nil, until
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// endedFailure returns the failure of a task whose context has ended.
func endedFailure(ctx context.Context, policy *attempt.Policy, leases int) *attempt.Error {
	f := policy.Ended(ctx, leases > 0)
	if f.Code == contract.TaskDeadlineExceeded && leases == 0 {
		return policy.NotPulled()
	}
	return f
}
