package router

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
)

// end is the end of the record. One that was written before it was acknowledged is
// this one too.
func endRecord(ctx context.Context, t *execution.OwnedRequest, resp *contract.Response, now time.Time) (*requests.Record, error) {
	rec, err := t.ChangeUntilStored(ctx, func(rec *requests.Record) error { return rec.End(resp.Status, resp, now) })
	if errors.Is(err, requests.ErrEnded) && rec != nil && rec.EndedAt.Equal(now) && rec.Owner == t.Owner && rec.Epoch == t.Epoch {
		return rec, nil
	}
	return rec, err
}

// commit puts the plan on record before anything of it is given out. What cannot
// be recorded is not done.
func (r *Router) commit(ctx context.Context, j *job, p *plan.Plan) error {
	var cancel context.CancelFunc
	switch {
	case errors.Is(context.Cause(ctx), dispatch.ErrHandedOver):
		return dispatch.ErrHandedOver
	case j.tracked == nil:
		// Who leaves now does not leave a decision without an end behind.
		ctx, cancel = j.closing(ctx)
		defer cancel()
	case ctx.Err() != nil:
		// The time is up before anything was given out: the decision is put on
		// record all the same, and each task says that it came too late.
		ctx, cancel = afterwards(ctx)
		defer cancel()
	}
	var steps []func(context.Context) error
	if j.tracked != nil && j.plan == nil {
		steps = append(steps, planRecord(j.tracked, p))
	}
	if !j.started {
		steps = append(steps, func(ctx context.Context) error { return r.journal.RecordDecision(ctx, j.subject(), j.req, &p.Decision) })
		if j.tracked != nil {
			steps = append(steps, startRecord(j.tracked))
		}
	}
	for _, step := range steps {
		if err := j.patiently(ctx, step); err != nil {
			return err
		}
	}
	r.announce(j, &p.Decision)
	return nil
}

func planRecord(t *execution.OwnedRequest, p *plan.Plan) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := t.Change(ctx, func(rec *requests.Record) error { return rec.Plan(&p.Decision, p.StoredParts(), p.Omitted) })
		return err
	}
}

func startRecord(t *execution.OwnedRequest) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := t.Change(ctx, func(rec *requests.Record) error { return rec.Start(t.Owner, t.Epoch) })
		return err
	}
}

// patiently takes a step on the way to the agents. A request nobody waits for was
// accepted: what the store refuses now it may take later, until the deadline.
func (j *job) patiently(ctx context.Context, step func(context.Context) error) error {
	err := step(ctx)
	for pause := execution.FirstWritePause; err != nil && j.tracked != nil && history.IsTemporary(err); pause = min(2*pause, execution.MaxWritePause) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			err = step(ctx)
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
	return err
}

// conclude ends a request: its one terminal state, the record, the session, the
// log. Another end of it that was first, a cancellation, is the one that counts.
func (r *Router) conclude(ctx context.Context, j *job, resp *contract.Response, p *plan.Plan, runs []plan.Outcome) (*contract.Response, error) {
	if errors.Is(context.Cause(ctx), dispatch.ErrHandedOver) {
		return nil, dispatch.ErrHandedOver
	}
	j.clock.stop(resp.Decision)
	r.announce(j, resp.Decision)
	if j.tracked != nil {
		rec, err := endRecord(ctx, j.tracked, resp, r.cfg.Now().UTC())
		if err != nil {
			return nil, err
		}
		resp = rec.Response
	}
	if !j.dryRun() {
		err := r.recordOutcome(ctx, j, resp)
		for j.tracked != nil && err != nil && history.IsTemporary(err) && j.tracked.Pause(execution.MaxWritePause) {
			err = r.recordOutcome(ctx, j, resp)
		}
		if err != nil && j.tracked == nil && len(runs) == 0 {
			return nil, err // nothing was done: the caller may try again
		}
	}
	r.updateSession(ctx, j, resp, p, runs)
	r.record(ctx, j, resp)
	return resp, nil
}

// recordOutcome writes the answer. The error is for the caller; the log has it
// already.
func (r *Router) recordOutcome(ctx context.Context, j *job, resp *contract.Response) error {
	ctx, cancel := j.closing(ctx)
	defer cancel()
	if err := r.journal.RecordResponse(ctx, j.subject(), resp); err != nil {
		return err
	}
	if j.tracked == nil {
		return nil
	}
	if err := r.keep.Book.RemoveOpen(ctx, resp.RequestID); err != nil {
		r.cfg.Logger.WarnContext(ctx, "an ended request stays in the index of open ones until the next start",
			"request_id", resp.RequestID, "err", err)
	}
	return nil
}

// storeTrouble is the error of a request that needs the store to be accepted.
func (r *Router) storeTrouble(ctx context.Context, what string, err error) error {
	return store.CallerError(ctx, r.cfg.Logger, what, err)
}
