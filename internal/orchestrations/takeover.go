package orchestrations

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/orchestrator"
)

// minEntryAge is how old an entry of the index is before it is removed because it has no
// record: its creation was interrupted.
const minEntryAge = time.Minute

// errNotAbandoned ends the takeover of a run that needs no work, or that a live process
// executes.
var errNotAbandoned = errors.New("the run needs no other process")

// tryResume is resume. An error is logged, because the sweep tries again.
func (s *Service) tryResume(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), concludeTimeout)
	defer cancel()
	if err := s.resume(ctx, id); err != nil {
		s.cfg.Logger.Warn("an orchestration is not continued yet", "orchestration_id", id, "error", err)
	}
}

// resume takes a run over, unless it needs no work or a live process executes it.
func (s *Service) resume(ctx context.Context, id string) error {
	if s.running.has(id) {
		return nil
	}
	rec, err := s.store.get(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound) && time.Since(history.TimeOfID(id)) < minEntryAge:
		return nil // its creation is about to be completed
	case errors.Is(err, store.ErrNotFound):
		return s.store.close(ctx, id)
	case err != nil:
		return err
	case !s.isAbandoned(rec):
		return nil
	}
	ended := rec.State.Terminal()
	if ended {
		if open, err := s.store.isOpen(ctx, id); err != nil || !open {
			return err // it was concluded since the index was read
		}
	}
	runCtx, err := s.running.reserve(id, true)
	if err != nil {
		return nil //nolint:nilerr // it is executed, or this process stops
	}
	rec, err = s.store.Update(ctx, id, func(r *orchestrator.Record) error {
		switch {
		case !s.isAbandoned(r), r.State.Terminal() && !ended: // its process concludes it
			return errNotAbandoned
		case r.State.Terminal():
			r.Owner = s.cfg.Owner
			return nil
		}
		return r.TakeOver(s.cfg.Owner, time.Now())
	})
	switch {
	case err != nil:
		s.running.release(id)
		if errors.Is(err, errNotAbandoned) {
			return nil
		}
		return err
	case rec.State.Terminal():
		s.running.release(id)
		s.conclude(ctx, rec)
		return nil
	}
	s.start(runCtx, rec)
	return nil
}

// isAbandoned reports whether a run that this process does not execute needs work, and no
// live process does it.
func (s *Service) isAbandoned(r *orchestrator.Record) bool {
	if r.Owner == "" && !r.State.Terminal() {
		return r.NeedsWork(time.Now())
	}
	// The owner can be this process: the store did not confirm the beginning or the end of the
	// run.
	return r.Owner == s.cfg.Owner || !s.cfg.IsLive(r.Owner)
}

// sweepInterval is how often runs are looked for whose gate has expired or whose process
// has ended.
const sweepInterval = 2 * time.Second

// Run continues runs of processes that have ended, ends those whose gate has expired, and
// receives the messages of other processes, until the context ends.
func (s *Service) Run(ctx context.Context) error {
	g := run.New(ctx)
	g.Go("orchestrations without a process", func(ctx context.Context) error {
		s.sweep(ctx)
		for range run.Ticks(ctx, sweepInterval) {
			s.sweep(ctx)
		}
		return nil
	})
	g.Go("cancellations of other replicas", func(ctx context.Context) error {
		subscribe := func() {
			_ = s.cfg.Messages.Subscribe(ctx, cancelTopic, func(id []byte) { s.running.cancel(string(id), orchestrator.ErrCancelled) })
		}
		subscribe()
		for range run.Ticks(ctx, sweepInterval) { // the connection was interrupted
			subscribe()
		}
		return nil
	})
	return g.Wait()
}

func (s *Service) sweep(ctx context.Context) {
	ids, err := s.store.open.Keys(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.cfg.Logger.Warn("the open orchestrations cannot be read", "error", err)
		}
		return
	}
	counts := map[contract.OrchestrationStatus]int{}
	for _, id := range ids {
		if ctx.Err() != nil {
			return
		}
		rec, err := s.store.get(ctx, id)
		if err == nil && !rec.State.Terminal() {
			counts[rec.Status()]++
		}
		switch {
		case !s.running.has(id):
			s.tryResume(id)
		case err == nil && rec.CancelledBy != "":
			// Another process has recorded the cancellation, and its message may be lost.
			s.running.cancel(id, orchestrator.ErrCancelled)
		}
	}
	s.counts.Store(&counts)
}

// CountOpen returns the number of runs in the store that have not ended, by status, as of the
// last sweep.
func (s *Service) CountOpen() map[contract.OrchestrationStatus]int {
	if counts := s.counts.Load(); counts != nil {
		return *counts
	}
	return nil
}
