package orchestrations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/orchestrator"
)

var errNoRun = &contract.Error{Code: contract.CodeNotFound, Message: "there is no such orchestration"}

// maySee reports whether the caller may see a run: its own, or that of another caller of
// its tenant if it may approve.
func maySee(caller *contract.Caller, rec *orchestrator.Record) bool {
	return rec.Caller.SamePrincipal(caller) || caller.SeesAll() || caller.HasScope(contract.ScopeApprove) && rec.Caller.SameTenant(caller)
}

// load returns the record that the caller may see.
func (s *Service) load(ctx context.Context, id string, caller *contract.Caller) (*orchestrator.Record, error) {
	rec, err := s.store.get(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, store.CallerError(ctx, s.cfg.Logger, "the orchestration cannot be read", err)
	}
	if err != nil || !maySee(caller, rec) {
		return nil, errNoRun
	}
	return rec, nil
}

// Get returns the state of a run. Errors are *contract.Error.
func (s *Service) Get(ctx context.Context, id string, caller *contract.Caller) (*contract.Orchestration, error) {
	rec, err := s.load(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	return rec.Snapshot(), nil
}

// followInterval is how often a reader looks for changes that another process makes.
const followInterval = time.Second

// Follow calls emit for the events of a run after a sequence number, and returns its result
// when it has ended. If the context ends first, it returns the state of the run. Errors are
// *contract.Error, or that of emit.
func (s *Service) Follow(ctx context.Context, id string, caller *contract.Caller, after int, emit func(contract.RunEvent) error) (*contract.Orchestration, error) {
	return s.follow(ctx, id, caller, after, false, emit)
}

// Wait returns the state of the run when it has ended or waits for a person, or when the
// context ends. Errors are *contract.Error.
func (s *Service) Wait(ctx context.Context, id string, caller *contract.Caller) (*contract.Orchestration, error) {
	return s.follow(ctx, id, caller, 0, true, func(contract.RunEvent) error { return nil })
}

// follow is Follow, and Wait if untilWaiting is set.
func (s *Service) follow(
	ctx context.Context, id string, caller *contract.Caller, after int, untilWaiting bool, emit func(contract.RunEvent) error,
) (*contract.Orchestration, error) {
	changed, stop := s.store.followers.follow(id)
	defer stop()
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		rec, err := s.load(context.WithoutCancel(ctx), id, caller)
		if err != nil {
			return nil, err
		}
		for ; after < len(rec.Events); after++ {
			if err := emit(rec.Events[after]); err != nil {
				return rec.Snapshot(), err
			}
		}
		if rec.State.Terminal() || untilWaiting && rec.Status() == contract.OrchestrationWaiting {
			return rec.Snapshot(), nil
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return rec.Snapshot(), nil
		}
	}
}

// Complete submits a goal, unless its run exists already or must be resumed, and returns
// the run when it has ended. It calls onGate for each call that waits for a person. If the
// context ends before, the run is cancelled, unless the process stops; if it only waited
// for a person, it is returned with the error of the context. A *contract.Error means that
// the goal was not submitted; after any other error without a run, the run may continue.
func (s *Service) Complete(ctx context.Context, sub Submission, onGate func(*contract.ApprovalGate)) (*contract.Orchestration, error) {
	if !sub.MustResume {
		switch _, err := s.store.get(ctx, sub.ID); {
		case errors.Is(err, store.ErrNotFound):
			if _, err := s.Submit(ctx, sub); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, store.CallerError(ctx, s.cfg.Logger, "the orchestration cannot be read", err)
		}
	}
	result, err := s.awaitEnd(ctx, sub.ID, sub.Caller, onGate)
	switch {
	case err == nil && result.Status.Terminal():
		return result, nil
	case err != nil && ctx.Err() == nil:
		return nil, err
	case !errors.Is(context.Cause(ctx), dispatch.ErrHandedOver):
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), concludeTimeout)
		defer cancel()
		run, err := s.Cancel(detached, sub.ID, sub.Caller)
		// A run that no process executes ends at once. An error: it may have ended meanwhile.
		if err == nil && run.Status.Terminal() && len(run.UndecidedGates()) > 0 {
			return run, ctx.Err()
		}
	}
	return nil, ctx.Err()
}

// awaitEnd is Follow for a run that this process has begun, or found. It repeats a read that
// fails, because the run continues meanwhile: if its task was given to another agent, the goal
// would be pursued twice. For the same reason, no error is a *contract.Error.
func (s *Service) awaitEnd(ctx context.Context, id string, caller *contract.Caller, onGate func(*contract.ApprovalGate)) (*contract.Orchestration, error) {
	backoff := resilience.Backoff{Min: minReadPause, Max: maxReadPause}
	after := 0
	for {
		result, err := s.Follow(ctx, id, caller, after, func(ev contract.RunEvent) error {
			after = ev.Seq
			if ev.Event != string(orchestrator.EventGateOpened) {
				return nil
			}
			// It may have got its decision: the events are also those of an earlier process.
			if rec, err := s.store.get(ctx, id); err == nil {
				if gate := rec.OpenGate(ev.StepID); gate != nil {
					onGate(gate)
				}
			}
			return nil
		})
		if err == nil {
			return result, nil
		}
		if errors.Is(err, errNoRun) || !backoff.Sleep(ctx) {
			return nil, fmt.Errorf("follow orchestration %s: %v", id, err) //nolint:errorlint // not a *contract.Error
		}
	}
}

// Pauses before a run is read again.
const (
	minReadPause = 100 * time.Millisecond
	maxReadPause = 5 * time.Second
)

// Errors of a decision.
var (
	errExpired = &contract.Error{Code: contract.CodeConflict, Message: "the time to decide about the step has passed"}
	errOwnRun  = &contract.Error{Code: contract.CodeForbidden, Message: "another person than the caller of the run must decide"}
)

// noGateError returns the error of a decision about a step that does not wait for one.
func noGateError(r *orchestrator.Record, step string) error {
	var waiting []string
	for i := range r.Gates {
		if id := r.Gates[i].StepID; r.OpenGate(id) != nil {
			waiting = append(waiting, id)
		}
	}
	text := fmt.Sprintf("step %q does not wait for a decision; ", step)
	if len(waiting) > 0 {
		text += "waiting: " + strings.Join(waiting, ", ")
	} else {
		text += "the run is " + string(r.Status())
	}
	return &contract.Error{Code: contract.CodeConflict, Message: text}
}

// Approve decides about a call that waits for a person. Errors are *contract.Error.
func (s *Service) Approve(ctx context.Context, id string, approval contract.Approval, caller *contract.Caller) (*contract.Orchestration, error) {
	rec, err := s.load(ctx, id, caller)
	switch {
	case err != nil:
		return nil, err
	case rec.Caller.SamePrincipal(caller) && !s.cfg.SelfApproval:
		return nil, errOwnRun
	}
	rec, err = s.store.Update(ctx, id, func(r *orchestrator.Record) error {
		g := r.OpenGate(approval.Step)
		switch {
		case g == nil:
			return noGateError(r, approval.Step)
		case !time.Now().Before(g.ExpiresAt):
			return errExpired
		}
		g.Decision, g.DecidedBy, g.DecidedAt, g.Comment = approval.Decision, caller.Subject, time.Now().UTC(), approval.Comment
		return nil
	})
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return nil, e
	}
	if err != nil {
		return nil, store.CallerError(ctx, s.cfg.Logger, "the decision cannot be stored", err)
	}
	s.tryResume(id)
	return rec.Snapshot(), nil
}

const cancelTopic = "orchestrations.cancel"

// Cancel ends a run: no further call is made, and calls in flight are cancelled. It
// returns the state of the run, which may end a moment later. Errors are *contract.Error.
func (s *Service) Cancel(ctx context.Context, id string, caller *contract.Caller) (*contract.Orchestration, error) {
	rec, err := s.load(ctx, id, caller)
	switch {
	case err != nil:
		return nil, err
	case !rec.Caller.SamePrincipal(caller) && !caller.SeesAll():
		return nil, &contract.Error{Code: contract.CodeForbidden, Message: "only the caller of the run may cancel it"}
	}
	return s.cancel(ctx, id, caller.Subject)
}

// cancel is Cancel for a caller who may cancel the run.
func (s *Service) cancel(ctx context.Context, id, by string) (*contract.Orchestration, error) {
	rec, err := s.store.Update(ctx, id, func(r *orchestrator.Record) error { return r.Cancel(by, time.Now()) })
	switch {
	case errors.Is(err, orchestrator.ErrEnded) && rec.Reason == contract.ReasonCancelled:
		return rec.Snapshot(), nil
	case errors.Is(err, orchestrator.ErrEnded):
		return nil, &contract.Error{Code: contract.CodeConflict, Message: "the orchestration has ended with status " + string(rec.Status())}
	case errors.Is(err, store.ErrNotFound): // it was erased meanwhile
		return nil, errNoRun
	case err != nil:
		return nil, store.CallerError(ctx, s.cfg.Logger, "the orchestration cannot be cancelled", err)
	case rec.State.Terminal():
		s.conclude(ctx, rec)
	case !s.running.cancel(id, orchestrator.ErrCancelled):
		if err := s.cfg.Messages.Broadcast(cancelTopic, []byte(id)); err != nil {
			s.cfg.Logger.Debug("a cancellation was not sent to the other replicas", "orchestration_id", id, "error", err)
		}
	}
	return rec.Snapshot(), nil
}
