package asyncrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// Recover finds the decisions that the previous process left without a response.
// It must be called before the first request, because afterwards decisions without
// a response are those of this process.
func (r *Runner) Recover(ctx context.Context) (err error) {
	if r.interrupted, err = r.cfg.AuditLog.Unfinished(ctx); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	return nil
}

// ResumeAll resumes the asynchronous requests that were open when the previous
// process stopped, and records that its synchronous requests were interrupted. If
// the store rejects a write, it retries until ctx ends.
func (r *Runner) ResumeAll(ctx context.Context) error {
	if err := r.retryStep(ctx, "close interrupted requests", r.closeInterrupted); err != nil {
		return err
	}
	return r.retryStep(ctx, "resume open requests", r.resumeOpen)
}

// retryStep calls step with exponential backoff until it succeeds.
func (r *Runner) retryStep(ctx context.Context, name string, step func(context.Context) error) error {
	for pause := execution.FirstWritePause; ; pause = min(2*pause, execution.MaxWritePause) {
		err := step(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		r.cfg.Logger.ErrorContext(ctx, "recovery is incomplete, trying again", "step", name, "err", err)
		if !sleepContext(ctx, pause) {
			return ctx.Err()
		}
	}
}

// closeInterrupted records the responses of the synchronous requests that the
// previous process did not complete.
func (r *Runner) closeInterrupted(ctx context.Context) error {
	closed := 0
	for len(r.interrupted) > 0 {
		id := r.interrupted[0].RequestID
		_, err := r.cfg.Store.Get(ctx, id)
		if errors.Is(err, store.ErrNotFound) { // not an asynchronous request
			err = r.cfg.Journal.CloseInterrupted(ctx, &r.interrupted[0])
			closed++
		}
		if err != nil {
			return fmt.Errorf("close interrupted request %s: %w", id, err)
		}
		r.interrupted = r.interrupted[1:]
	}
	if closed > 0 {
		r.cfg.Logger.InfoContext(ctx, "the previous process stopped during requests; the audit log contains their ends", "requests", closed)
	}
	return nil
}

// maxTakeovers bounds the requests that are taken over at the same time, because
// each of them waits for the disk.
const maxTakeovers = 32

// resumeOpen resumes every open request. A request that cannot be read is logged
// and left as it is.
func (r *Runner) resumeOpen(ctx context.Context) error {
	start := time.Now()
	ids, err := r.cfg.Store.ListOpen(ctx)
	if err != nil {
		return fmt.Errorf("read the open requests: %w", err)
	}
	errs := make([]error, len(ids))
	run.ForEach(ctx, maxTakeovers, len(ids), func(ctx context.Context, i int) {
		switch err := r.Resume(ctx, ids[i]); {
		case err == nil, ctx.Err() != nil:
		case store.IsTemporary(err):
			errs[i] = fmt.Errorf("take over request %s: %w", ids[i], err)
		default:
			r.cfg.Logger.ErrorContext(ctx, "cannot take over an open request", "request_id", ids[i], "err", err)
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(ids) > 0 {
		r.cfg.Logger.InfoContext(ctx, "open requests resumed", "requests", len(ids), "took", time.Since(start))
	}
	return nil
}

// errOwned ends the takeover of a request that this process has accepted meanwhile.
var errOwned = errors.New("this process owns the request")

// Resume takes over one request and runs it.
func (r *Runner) Resume(ctx context.Context, id string) error {
	if r.cfg.Inflight.Lookup(id) != nil {
		return nil
	}
	now := r.cfg.Now()
	rec, err := r.cfg.Store.Update(ctx, id, func(rec *requests.Record) error {
		if rec.Owner == r.cfg.Owner && !rec.State.Terminal() {
			return errOwned
		}
		return rec.TakeOver(r.cfg.Owner, now)
	})
	switch {
	case errors.Is(err, errOwned):
		return nil
	case errors.Is(err, store.ErrNotFound):
		// Read again before the index entry is removed, because without the entry
		// the request would never be resumed.
		if _, err := r.cfg.Store.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return r.cfg.Store.RemoveOpen(ctx, id)
	case errors.Is(err, requests.ErrEnded):
		return r.restoreOutcome(ctx, id)
	case err != nil:
		return err
	}
	r.capacity.force(&rec.Caller)
	r.startRun(r.pipeline.Restore(rec), rec)
	return nil
}

// restoreOutcome writes the response of a request that ended right before its
// process stopped to the audit log.
func (r *Runner) restoreOutcome(ctx context.Context, id string) error {
	rec, err := r.cfg.Store.Get(ctx, id)
	if err != nil {
		return err
	}
	found, err := r.cfg.AuditLog.Find(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if found.Outcome == nil {
		if err := r.cfg.Journal.RestoreResponse(ctx, r.pipeline.Restore(rec).Subject(), rec.Response); err != nil {
			return err
		}
	}
	r.cfg.EndKey(ctx, rec.KeyName, rec.Response)
	return r.cfg.Store.RemoveOpen(ctx, id)
}
