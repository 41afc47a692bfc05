package asyncrun

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
)

// Run is the execution of one asynchronous request by this process. It is owned by
// the goroutine that serves the request.
type Run struct {
	Request     *execution.Request
	Persistence execution.Persistence
	Emit        func(*contract.Event) // publishes an event; may be called from several goroutines
	Inflight    *inflight.Request
	Plan        *plan.Plan      // restored from the stored request; nil if it is not planned
	Previous    []requests.Task // sent by an earlier process

	runner  *Runner
	owned   *execution.OwnedRequest
	started bool // the stored request is running
}

// restorePlan sets the plan and the tasks of a stored request.
func (r *Run) restorePlan(rec *requests.Record) {
	if rec.Decision == nil {
		return
	}
	r.Plan = plan.Restore(rec)
	r.Previous = rec.Tasks
	r.started = rec.State != requests.StatePlanned
}

// RecordDecision makes the plan and the decision durable before any task is sent. The
// stored request is running when its first task is stored. If the store rejects a write,
// RecordDecision retries until the deadline, because the request was accepted.
func (r *Run) RecordDecision(ctx context.Context, p *plan.Plan, meanwhile func()) error {
	if errors.Is(context.Cause(ctx), dispatch.ErrHandedOver) {
		return dispatch.ErrHandedOver
	}
	if ctx.Err() != nil {
		// The deadline passed before any task was sent. Record the decision anyway:
		// each task then ends because it is too late.
		var cancel context.CancelFunc
		ctx, cancel = execution.Detach(ctx)
		defer cancel()
	}
	var writes []func(context.Context) error
	if r.Plan == nil {
		writes = append(writes, r.changeRecord(func(rec *requests.Record) error {
			return rec.Plan(&p.Decision, p.StoredParts(), p.Omitted)
		}))
	}
	if !r.started {
		writes = append(writes,
			func(ctx context.Context) error { return r.recordDecisionOnce(ctx, &p.Decision, meanwhile) },
			func(ctx context.Context) error {
				return r.runner.cfg.StartKey(ctx, r.Request.KeyName, r.Request.RequestID)
			})
	}
	for _, write := range writes {
		if err := retryUntilDone(ctx, write); err != nil {
			return err
		}
	}
	return nil
}

// recordDecisionOnce writes the decision record, unless the process that made the plan
// did so before it stopped.
func (r *Run) recordDecisionOnce(ctx context.Context, d *contract.Decision, meanwhile func()) error {
	if r.Plan != nil {
		found, err := r.runner.cfg.AuditLog.Find(ctx, r.Request.RequestID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if found.Decision != nil {
			return nil
		}
	}
	return r.runner.cfg.Journal.RecordDecision(ctx, r.Request.Subject(), r.Request.Request, d, meanwhile)
}

func (r *Run) changeRecord(change func(*requests.Record) error) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := r.owned.Change(ctx, change)
		return err
	}
}

// retryUntilDone retries a write that the store rejects, until ctx is done.
func retryUntilDone(ctx context.Context, write func(context.Context) error) error {
	backoff := execution.NewWriteBackoff()
	for {
		err := write(ctx)
		if err == nil || !history.IsTemporary(err) || !backoff.Sleep(ctx) {
			return err
		}
	}
}

// RecordOutcome ends the stored request with the response, and returns the response
// that counts. If the request was cancelled meanwhile, it returns
// requests.ErrEnded.
func (r *Run) RecordOutcome(ctx context.Context, resp *contract.Response) (*contract.Response, error) {
	return r.recordOutcomeAt(ctx, resp, r.runner.cfg.Now().UTC())
}

// recordOutcomeAt is RecordOutcome at a time, which recognizes an end that was written
// without a confirmation.
func (r *Run) recordOutcomeAt(ctx context.Context, resp *contract.Response, now time.Time) (*contract.Response, error) {
	rec, err := r.owned.ChangeUntilStored(ctx, func(rec *requests.Record) error {
		response := resp
		if r.owned.IsSuperseded() { // no task is open, so that the reason of an interruption does not matter
			response = r.runner.interruptedResponse(rec, r.Request, &interruption{})
		}
		return rec.End(response.Status, response, now)
	})
	if err != nil && !wroteEnd(r.owned, rec, err, now) {
		return nil, err
	}
	for {
		err := r.runner.recordResponse(ctx, r.Request, rec.Response)
		if err == nil || !history.IsTemporary(err) || !r.owned.Pause(execution.MaxWritePause) {
			return rec.Response, nil
		}
	}
}

// wroteEnd reports whether the request had ended because its owner wrote the end
// before, and the confirmation got lost.
func wroteEnd(owned *execution.OwnedRequest, rec *requests.Record, err error, now time.Time) bool {
	return errors.Is(err, requests.ErrEnded) && rec != nil && rec.EndedAt.Equal(now) && rec.Owner == owned.Owner && rec.Epoch == owned.Epoch
}

// giveUp ends a request that the pipeline could not serve, for example because of
// a panic, or because the store accepts no write.
func (r *Run) giveUp(ctx context.Context) {
	rec, err := r.owned.ChangeUntilStored(ctx, func(rec *requests.Record) error {
		resp := r.runner.interruptedResponse(rec, r.Request, &interruption{
			status: contract.TaskFailed,
			sent: contract.TaskError{
				Code: contract.TaskOutcomeUnknown, Detail: "the router failed while it executed the task",
			},
			notSent: contract.TaskError{
				Code: contract.TaskAgentUnavailable, Detail: "the router could not record that the task is sent",
			},
		})
		return rec.End(resp.Status, resp, r.runner.cfg.Now())
	})
	if err != nil {
		return // the cause is logged, and the next start tries again
	}
	r.runner.concludeStored(ctx, r.Request, rec, r.Emit)
}
