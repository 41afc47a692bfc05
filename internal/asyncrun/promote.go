package asyncrun

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
)

// Promotion is a synchronous request that is being executed and needs a stored record.
type Promotion struct {
	Request  *execution.Request
	Timeout  time.Duration // from its acceptance to the Deadline
	Plan     *plan.Plan
	AddTasks func(*requests.Record) error // adds the tasks so far
	Deadline time.Time
	// WriteUntil bounds how long writes delay the response. What is not stored by then
	// is stored in the background.
	WriteUntil time.Time
}

// Promoted is a synchronous request with a stored record. The process that accepted it
// executes it, as its caller waits; if that process ends, another one takes the request
// over and completes it in the background.
type Promoted struct {
	runner    *Runner
	request   *execution.Request
	owned     *execution.OwnedRequest
	emit      func(*contract.Event)
	concluded atomic.Bool
}

// Promote stores the record of a running synchronous request. Close must be called
// when the request has ended. If Promote returns an error, which it has logged, the
// caller ends the request as a synchronous one.
//
// The request was accepted, so only the store can reject it: it counts as open, but
// the limits of new asynchronous requests do not apply.
func (r *Runner) Promote(ctx context.Context, p *Promotion) (*Promoted, error) {
	rec := r.newRecord(p.Request, p.Timeout)
	rec.CreatedAt, rec.Deadline = p.Deadline.Add(-p.Timeout).UTC(), p.Deadline.UTC()
	err := rec.Plan(&p.Plan.Decision, p.Plan.StoredParts(), p.Plan.Omitted)
	if err == nil {
		err = rec.Start(rec.Owner, rec.Epoch)
	}
	if err == nil {
		err = p.AddTasks(rec)
	}
	if err == nil {
		err = r.storePromoted(ctx, rec, p.WriteUntil)
	}
	if err != nil {
		r.cfg.Logger.ErrorContext(ctx, "cannot store a synchronous request whose result arrives later", "request_id", rec.ID, "error", err)
		return nil, err
	}
	r.capacity.addStored(&rec.Caller)
	owned := r.ownedRequest(rec, nil, execution.NoPermit{})
	owned.WriteUntil = p.WriteUntil
	return &Promoted{runner: r, request: p.Request, owned: owned, emit: r.newEmitter(rec.ID)}, nil
}

// storePromoted creates the record. A record that may be stored although the store did
// not confirm it is deleted in the background: the audit log gets the end of the request.
func (r *Runner) storePromoted(ctx context.Context, rec *requests.Record, until time.Time) error {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	if err := r.cfg.Store.MakeRoom(ctx, &rec.Caller); err != nil {
		r.cfg.Logger.DebugContext(ctx, "no room was made for a promoted request", "request_id", rec.ID, "error", err)
	}
	err := r.createRecord(ctx, rec)
	if errors.Is(err, store.ErrUnavailable) {
		r.group.Go("delete the unconfirmed record of request "+rec.ID, func(ctx context.Context) error {
			_ = retryUntilDone(ctx, func(ctx context.Context) error { return r.cfg.Store.Delete(ctx, rec.ID) })
			return nil
		})
	}
	return err
}

// Owned returns the record.
func (p *Promoted) Owned() *execution.OwnedRequest { return p.owned }

// Emit publishes an event to the readers of the request's events.
func (p *Promoted) Emit(ev *contract.Event) { p.emit(ev) }

// Conclude ends the record with the response, and returns the response that counts. It
// returns requests.ErrEnded if the request was ended elsewhere, for example cancelled,
// and requests.ErrNotOwner if another process has taken it over. If the store does not
// accept the end in time, the caller gets the response nevertheless, because the agents
// have done their work, and the end is stored in the background.
func (p *Promoted) Conclude(ctx context.Context, resp *contract.Response) (*contract.Response, error) {
	p.concluded.Store(true)
	r, now := p.runner, p.runner.cfg.Now().UTC()
	rec, err := p.owned.ChangeUntilStored(ctx, func(rec *requests.Record) error { return rec.End(resp.Status, resp, now) })
	switch {
	case err == nil || wroteEnd(p.owned, rec, err, now):
		resp = rec.Response
		err = r.writeResponse(ctx, p.request, resp)
		if err == nil || !history.IsTemporary(err) {
			return resp, nil
		}
	case !store.IsTemporary(err):
		return nil, err
	}
	p.inBackground("conclude", func(ctx context.Context, run *Run) { _, _ = run.recordOutcomeAt(ctx, resp, now) })
	return resp, nil
}

// Close releases what the request holds. A request that was not concluded, because the
// pipeline failed, is given up.
func (p *Promoted) Close() {
	p.runner.capacity.release(p.request.Caller)
	if !p.concluded.Load() {
		p.inBackground("give up", func(ctx context.Context, run *Run) { run.giveUp(ctx) })
	}
}

// inBackground continues the request as an asynchronous one, without its caller.
func (p *Promoted) inBackground(name string, fn func(ctx context.Context, run *Run)) {
	p.runner.group.Go(name+" request "+p.owned.ID, func(ctx context.Context) error {
		owned := *p.owned
		owned.Stopping, owned.WriteUntil = ctx.Done(), time.Time{}
		fn(ctx, &Run{runner: p.runner, Request: p.request, owned: &owned, Emit: p.emit})
		return nil
	})
}
