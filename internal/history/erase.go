package history

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Erase removes the content of a request of the caller, or of its call of a tool or its
// orchestration: prompt, decision, response, turns of its session, events, orchestrations,
// feedback, and texts in tickets. The audit log keeps that the request existed, when, whose it
// was, and its status. Orchestrations that have not ended although the request has are
// cancelled. Erase waits a few seconds for the end of a request that was just cancelled, and of
// its orchestrations; then the error is conflict.
//
// If a part cannot be erased, Erase returns overloaded; it is safe to call again.
func (s *Service) Erase(ctx context.Context, id string, caller *contract.Caller) error {
	var found *storedRequest
	var runs EndedRuns
	err := AwaitEnding(ctx, func(ctx context.Context) (err error) {
		found, runs, err = s.findEnded(ctx, id, caller)
		return err
	})
	if err != nil {
		return err
	}
	var failed []string
	note := func(part string, err error) {
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			failed = append(failed, part)
			s.cfg.Logger.ErrorContext(ctx, "cannot erase", "request_id", id, "part", part, "error", err)
		}
	}
	// The session comes before the audit log, which contains its key. The record
	// comes last, because while it exists the caller can ask again.
	note("clarification", s.cfg.Questions.Erase(ctx, id))
	others, err := s.cfg.Sessions.EraseTurns(ctx, found.sessionKey(), id)
	note("session", err)
	for _, other := range others { // each was stored with the turns before it
		note("requests of the session", s.cfg.Requests.EraseTurns(ctx, other))
	}
	if len(failed) == 0 {
		var life time.Duration
		if !runs.At.IsZero() {
			life = runs.At.Sub(TimeOfID(id))
		}
		_, err := s.cfg.Log.Erase(ctx, id, caller, life)
		note("audit log", err)
	}
	note("tickets", s.cfg.Tickets.EraseRequest(ctx, id))
	note("events", s.cfg.Events.Delete(ctx, id))
	for _, run := range runs.IDs {
		note("orchestrations", s.cfg.Runs.DeleteRun(ctx, run))
	}
	note("feedback", s.cfg.Feedback.Erase(ctx, id))
	if len(failed) == 0 { // also without a record, of which earlier revisions may remain
		note("request", s.cfg.Requests.Delete(ctx, id))
		note("feedback", s.cfg.Feedback.Erase(ctx, id)) // that was given since, while there was a record
	}
	if len(failed) > 0 {
		return &contract.Error{Code: contract.CodeOverloaded, Message: "not all could be erased (" + strings.Join(failed, ", ") + "); try again"}
	}
	return nil
}

// findEnded looks up a request that the caller may erase, and its orchestrations, which it
// cancels. All of them have ended; otherwise the error is conflict.
func (s *Service) findEnded(ctx context.Context, id string, caller *contract.Caller) (found *storedRequest, runs EndedRuns, err error) {
	if found, err = s.findErasable(ctx, id, caller); err != nil {
		return nil, runs, err
	}
	if !visibility.MayEndRequest(caller, found.owner) {
		return nil, runs, errNotOwner("erase")
	}
	if err := s.checkEnded(ctx, found); err != nil {
		return nil, runs, err
	}
	if _, err := s.cfg.Runs.CancelRuns(ctx, id, caller.Subject); err != nil {
		return nil, runs, err
	}
	runs, err = s.cfg.Runs.EndedRuns(ctx, id)
	return found, runs, err
}

// checkEnded returns conflict if the request has not ended, or its outcome is still
// being written.
func (s *Service) checkEnded(ctx context.Context, found *storedRequest) error {
	if found.inFlight != nil || found.elsewhere || found.record != nil && !found.record.State.Terminal() {
		return &contract.Error{Code: contract.CodeConflict, Message: "the request has not ended: cancel it first"}
	}
	if found.unrecorded {
		return &contract.Error{Code: contract.CodeConflict, Message: "the response is not recorded yet; try again"}
	}
	if found.record == nil {
		return nil
	}
	open, err := s.cfg.Requests.IsOpen(ctx, found.id)
	if err != nil {
		return s.storeError(ctx, "the request cannot be erased", err)
	}
	if open || s.cfg.InFlight.Lookup(found.id) != nil {
		return NewEndingError("the request")
	}
	return nil
}
