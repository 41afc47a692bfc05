package asyncrun

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// ResumeAll resumes the stored requests that no live process executes, and records that
// the other requests of the previous process were interrupted. New requests may be
// submitted meanwhile. If the store cannot be read or rejects a write, it retries until
// ctx ends.
func (r *Runner) ResumeAll(ctx context.Context) error {
	var interrupted []audit.Record // decisions of earlier processes without a response
	err := r.retryStep(ctx, "find interrupted requests", func(ctx context.Context) (err error) {
		interrupted, err = r.cfg.AuditLog.Unfinished(ctx)
		return err
	})
	if err != nil {
		return err
	}
	closed := 0
	err = r.retryStep(ctx, "close interrupted requests", func(ctx context.Context) error {
		for len(interrupted) > 0 {
			ended, err := r.closeInterrupted(ctx, &interrupted[0])
			if err != nil {
				return fmt.Errorf("close interrupted request %s: %w", interrupted[0].RequestID, err)
			}
			if interrupted = interrupted[1:]; ended {
				closed++
			}
		}
		return nil
	})
	if closed > 0 {
		r.cfg.Logger.InfoContext(ctx, "the previous process stopped during requests; the audit log contains their ends", "requests", closed)
	}
	if err != nil {
		return err
	}
	return r.retryStep(ctx, "resume open requests", r.resumeOpen)
}

// TriggerTakeOver is to be called after other processes may have ended. It does not wait.
func (r *Runner) TriggerTakeOver() {
	select {
	case r.takeOverSignal <- struct{}{}:
	default: // TakeOver has not looked since
	}
}

// TakeOver resumes the stored requests of processes that end while this one runs (see
// TriggerTakeOver), until ctx ends.
func (r *Runner) TakeOver(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.takeOverSignal:
		}
		if err := r.retryStep(ctx, "take over requests", r.resumeOpen); err != nil {
			return err
		}
	}
}

// retryStep calls step with exponential backoff until it succeeds.
func (r *Runner) retryStep(ctx context.Context, name string, step func(context.Context) error) error {
	backoff := execution.NewWriteBackoff()
	for {
		err := step(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		r.cfg.Logger.ErrorContext(ctx, "recovery is incomplete, trying again", "step", name, "error", err)
		if !backoff.Sleep(ctx) {
			return ctx.Err()
		}
	}
}

// closeInterrupted records the response of a synchronous request that an earlier process
// did not complete, and reports whether it was one. A stored request is resumed later.
func (r *Runner) closeInterrupted(ctx context.Context, decision *audit.Record) (closed bool, err error) {
	switch _, err := r.cfg.Store.Get(ctx, decision.RequestID); {
	case err == nil: // its process may have stopped before it was in the index
		return false, r.cfg.Store.AddOpen(ctx, decision.RequestID)
	case errors.Is(err, store.ErrNotFound):
		return true, r.cfg.Journal.CloseInterrupted(ctx, decision)
	default:
		return false, err
	}
}

// maxTakeovers bounds the requests that are taken over at the same time, because
// each of them waits for the disk.
const maxTakeovers = 32

// resumeOpen resumes every open request that no live process executes. A request that
// cannot be read is logged and left as it is.
func (r *Runner) resumeOpen(ctx context.Context) error {
	start, resumed := time.Now(), atomic.Int64{}
	ids, err := r.cfg.Store.ListOpen(ctx)
	if err != nil {
		return fmt.Errorf("read the open requests: %w", err)
	}
	errs := make([]error, len(ids))
	run.ForEach(ctx, maxTakeovers, len(ids), func(ctx context.Context, i int) {
		switch done, err := r.resume(ctx, ids[i]); {
		case done:
			resumed.Add(1)
		case err == nil, ctx.Err() != nil:
		case store.IsTemporary(err):
			errs[i] = fmt.Errorf("take over request %s: %w", ids[i], err)
		default:
			r.cfg.Logger.ErrorContext(ctx, "cannot take over an open request", "request_id", ids[i], "error", err)
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if n := resumed.Load(); n > 0 {
		r.cfg.Logger.InfoContext(ctx, "open requests resumed", "requests", n, "took_ms", time.Since(start).Milliseconds())
	}
	return nil
}

// Resume takes over one request and runs it, unless a live process executes it.
func (r *Runner) Resume(ctx context.Context, id string) error {
	_, err := r.resume(ctx, id)
	return err
}

// errOwned ends the takeover of a request that a live process executes.
var errOwned = errors.New("a live process owns the request")

// resume is Resume. It reports whether this process has taken the request over.
func (r *Runner) resume(ctx context.Context, id string) (resumed bool, err error) {
	if r.IsDraining() || r.cfg.Inflight.Lookup(id) != nil {
		return false, nil
	}
	rec, err := r.cfg.Store.Get(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, r.removeStaleEntry(ctx, id)
	case err != nil:
		return false, err
	case !rec.IsAbandoned(r.cfg.IsLive):
		return false, nil
	case !rec.State.Terminal() && rec.Request.Options.Mode != contract.ModeAsync:
		if deleted, err := r.deleteUnconfirmed(ctx, id); deleted || err != nil {
			return false, err
		}
	}
	rec, err = r.cfg.Store.Update(ctx, id, func(rec *requests.Record) error {
		switch {
		case !rec.IsAbandoned(r.cfg.IsLive):
			return errOwned
		case rec.State.Terminal():
			return rec.AdoptEnd(r.cfg.Owner, r.cfg.Now())
		}
		return rec.TakeOver(r.cfg.Owner, r.cfg.Now())
	})
	switch {
	case errors.Is(err, errOwned), errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case rec.State.Terminal():
		return true, retryUntilDone(ctx, func(ctx context.Context) error { return r.restoreOutcome(ctx, rec) })
	}
	r.capacity.addStored(&rec.Caller)
	r.startRun(r.pipeline.Restore(rec), rec)
	return true, nil
}

// minEntryAge is how old a request is before its entry in the index of open ones is
// removed because it has no record: another process may be about to store it.
const minEntryAge = time.Minute

// removeStaleEntry removes a request without a record from the index of open ones.
func (r *Runner) removeStaleEntry(ctx context.Context, id string) error {
	if r.cfg.Now().Sub(history.TimeOfID(id)) < minEntryAge {
		return nil
	}
	// Read again before the entry is removed, because without the entry the request
	// would never be resumed.
	if _, err := r.cfg.Store.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return r.cfg.Store.RemoveOpen(ctx, id)
}

// deleteUnconfirmed deletes the record of a synchronous request that has ended. Its
// process did not know of the record, because the store did not confirm it, so it wrote
// the response to the audit log only: see storePromoted.
func (r *Runner) deleteUnconfirmed(ctx context.Context, id string) (deleted bool, err error) {
	found, err := r.cfg.AuditLog.Find(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if found.Outcome == nil {
		return false, nil
	}
	return true, r.cfg.Store.Delete(ctx, id)
}

// restoreOutcome writes the response of a request that ended right before its process
// stopped to the audit log. This process has adopted its end.
func (r *Runner) restoreOutcome(ctx context.Context, rec *requests.Record) error {
	found, err := r.cfg.AuditLog.Find(ctx, rec.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if found.Outcome == nil {
		if err := r.cfg.Journal.RestoreResponse(ctx, r.pipeline.Restore(rec).Subject(), rec.Response); err != nil {
			return err
		}
	}
	r.cfg.EndKey(ctx, rec.KeyName, rec.Response)
	return r.cfg.Store.RemoveOpen(ctx, rec.ID)
}
