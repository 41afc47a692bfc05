package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
)

// Recover finds out what the last process left undone. It must be called before
// Handle: what is under way then is this process's own.
func (r *Router) Recover(ctx context.Context) (err error) {
	if r.unfinished, err = r.keep.Trail.Unfinished(ctx); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	return nil
}

// Resume goes on with the requests nobody waits for that were open when the last
// process ended, and writes down that those somebody waited for were interrupted.
// What the store refuses, it tries again until ctx ends.
func (r *Router) Resume(ctx context.Context) error {
	if err := r.patiently(ctx, "requests that were interrupted", r.closeInterrupted); err != nil {
		return err
	}
	return r.patiently(ctx, "open requests", r.takeOverAll)
}

// patiently does what must be done sooner or later.
func (r *Router) patiently(ctx context.Context, undone string, do func(context.Context) error) error {
	for pause := execution.FirstWritePause; ; pause = min(2*pause, execution.MaxWritePause) {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		r.cfg.Logger.ErrorContext(ctx, "what the last process left is not taken up yet", "undone", undone, "err", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// closeInterrupted writes the ends of the requests whose callers are gone with
// the process that worked for them.
func (r *Router) closeInterrupted(ctx context.Context) error {
	closed := 0
	for len(r.unfinished) > 0 {
		id := r.unfinished[0].RequestID
		goesOn, err := r.isRecorded(ctx, id)
		if err == nil && !goesOn {
			err = r.journal.CloseInterrupted(ctx, &r.unfinished[0])
			closed++
		}
		if err != nil {
			return fmt.Errorf("close interrupted request %s: %w", id, err)
		}
		r.unfinished = r.unfinished[1:]
	}
	if closed > 0 {
		r.cfg.Logger.InfoContext(ctx, "requests were interrupted by the end of the last process; the audit log says so", "requests", closed)
	}
	return nil
}

// isRecorded reports whether the request has a record: it goes on, or settles with
// that.
func (r *Router) isRecorded(ctx context.Context, id string) (bool, error) {
	_, err := r.keep.Book.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// takeOvers is how many requests are taken over at a time: each waits for the disk.
const takeOvers = 32

// takeOverAll goes on with every open request. One that cannot be read keeps none
// of the others from it, and is left as it is.
func (r *Router) takeOverAll(ctx context.Context) error {
	start := time.Now()
	ids, err := r.keep.Book.ListOpen(ctx)
	if err != nil {
		return fmt.Errorf("read the open requests: %w", err)
	}
	errs := make([]error, len(ids))
	run.ForEach(ctx, takeOvers, len(ids), func(ctx context.Context, i int) {
		switch err := r.resume(ctx, ids[i]); {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrUnavailable):
			errs[i] = fmt.Errorf("take over request %s: %w", ids[i], err)
		default:
			r.cfg.Logger.ErrorContext(ctx, "an open request cannot be taken over", "request_id", ids[i], "err", err)
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(ids) > 0 {
		r.cfg.Logger.InfoContext(ctx, "open requests were taken over", "requests", len(ids), "took", time.Since(start))
	}
	return nil
}

// errOurs is why a request is not taken over: this process accepted it just now.
var errOurs = errors.New("this process works on it")

// resume takes one request over.
func (r *Router) resume(ctx context.Context, id string) error {
	if r.inflight.Lookup(id) != nil {
		return nil // accepted meanwhile
	}
	now := r.cfg.Now()
	rec, err := r.keep.Book.Update(ctx, id, func(rec *requests.Record) error {
		if rec.Owner == r.keep.Owner && !rec.State.Terminal() {
			return errOurs
		}
		return rec.TakeOver(r.keep.Owner, now)
	})
	switch {
	case errors.Is(err, errOurs):
		return nil
	case errors.Is(err, store.ErrNotFound):
		// Looked for twice, since it is forgotten then.
		if _, err := r.keep.Book.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return r.keep.Book.RemoveOpen(ctx, id)
	case errors.Is(err, requests.ErrEnded):
		return r.settleEnded(ctx, id)
	case err != nil:
		return err
	}
	r.open.force()
	r.follow(r.rejoin(rec), rec)
	return nil
}

// settleEnded writes the outcome of a request that ended just before its process
// did.
func (r *Router) settleEnded(ctx context.Context, id string) error {
	rec, err := r.keep.Book.Get(ctx, id)
	if err != nil {
		return err
	}
	found, err := r.keep.Trail.Find(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if found.Outcome == nil {
		if err := r.journal.RestoreResponse(ctx, r.rejoin(rec).subject(), rec.Response); err != nil {
			return err
		}
	}
	return r.keep.Book.RemoveOpen(ctx, id)
}

// rejoin makes the job of a record again. It is as when it was accepted, but for
// the registry, which is today's.
func (r *Router) rejoin(rec *requests.Record) *job {
	view := r.view.Load()
	j := r.newJob(view, &rec.Request, &rec.Caller)
	j.clock.start = rec.CreatedAt
	j.only = rec.OnlyAgent
	j.session = session.FromHistory(rec.History)
	j.mask()
	if rec.Pinned != nil {
		j.pinned = (*session.Pinned)(rec.Pinned)
	}
	if rec.Decision != nil {
		j.plan, j.before = plan.Restore(rec, r.fleet()), rec.Tasks
		j.started = rec.State != requests.StatePlanned
	}
	return j
}
