package router

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
)

// outcomeRecorder makes the decision and the response of one request durable.
type outcomeRecorder interface {
	// RecordDecision is called before any task is sent. If it returns an error, no
	// task is sent. It may call meanwhile while it waits for the record.
	RecordDecision(ctx context.Context, p *plan.Plan, meanwhile func()) error

	// RecordOutcome returns the response that counts.
	RecordOutcome(ctx context.Context, resp *contract.Response) (*contract.Response, error)
}

// noOutcomeRecorder is the recorder of dry runs, which change nothing.
type noOutcomeRecorder struct{}

func (noOutcomeRecorder) RecordDecision(context.Context, *plan.Plan, func()) error { return nil }

func (noOutcomeRecorder) RecordOutcome(_ context.Context, resp *contract.Response) (*contract.Response, error) {
	return resp, nil
}

// syncOutcomeRecorder is the recorder of synchronous requests: they are recorded in the
// audit log and in their idempotency keys and, once they are promoted, in a stored
// record.
type syncOutcomeRecorder struct {
	router   *Router
	run      *requestRun
	deadline time.Time
	plan     *plan.Plan                        // set by RecordDecision
	decided  bool                              // the decision is recorded
	promoted atomic.Pointer[asyncrun.Promoted] // nil until the request is promoted
}

func (s *syncOutcomeRecorder) RecordDecision(ctx context.Context, p *plan.Plan, meanwhile func()) error {
	s.plan = p
	ctx, cancel := s.run.detachedContext(ctx)
	defer cancel()
	if err := s.router.journal.RecordDecision(ctx, s.run.Subject(), s.run.Request.Request, &p.Decision, meanwhile); err != nil {
		return err
	}
	s.decided = true
	// After the decision: a key that is started always has a record of its request,
	// also if the process ends in between.
	return s.router.keys.Start(ctx, s.run.reservation, s.run.RequestID)
}

// Promote implements execution.Promoter.
func (s *syncOutcomeRecorder) Promote(ctx context.Context, addTasks func(*requests.Record) error) (*execution.OwnedRequest, error) {
	promoted, err := s.router.async.Promote(ctx, &asyncrun.Promotion{
		Request: s.run.Request, Timeout: s.router.acceptor.RequestTimeout(s.run.Request.Request), Plan: s.plan, AddTasks: addTasks,
		Deadline: s.deadline, WriteUntil: s.deadline.Add(finalWriteGrace),
	})
	if err != nil {
		return nil, err
	}
	s.promoted.Store(promoted)
	return promoted.Owned(), nil
}

// isStored reports whether the request was promoted to a stored one.
func (s *syncOutcomeRecorder) isStored() bool { return s.promoted.Load() != nil }

// publish sends an event of a promoted request to the readers of its events.
func (s *syncOutcomeRecorder) publish(ev *contract.Event) {
	if promoted := s.promoted.Load(); promoted != nil {
		promoted.Emit(ev)
	}
}

func (s *syncOutcomeRecorder) RecordOutcome(ctx context.Context, resp *contract.Response) (*contract.Response, error) {
	ctx, cancel := s.run.detachedContext(ctx)
	defer cancel()
	if promoted := s.promoted.Load(); promoted != nil {
		return promoted.Conclude(ctx, resp)
	}
	s.run.encoded = history.EncodeResponse(s.run.Subject(), resp)
	record := s.router.journal.RecordResponse
	if s.router.cfg.Storage.AnswerFirst && s.decided && !s.run.reservation.Held() {
		record = s.router.journal.RecordInBackground
	}
	switch err := record(ctx, s.run.encoded); {
	case err == nil:
	case s.plan == nil:
		return nil, err // no decision and no task, so the caller may try again
	default:
		s.router.journal.RecordLater(s.run.encoded)
	}
	s.router.keys.End(ctx, s.run.reservation, resp)
	return resp, nil
}

// finish returns what the caller gets. A promoted request may have ended elsewhere, or
// another process may have taken it over because this one seemed to be dead: then the
// caller gets the state of the stored request.
func (s *syncOutcomeRecorder) finish(ctx context.Context, resp *contract.Response, err error) (*contract.Response, error) {
	promoted := s.promoted.Load()
	switch {
	case promoted == nil:
		if err != nil && s.decided {
			s.recordNotSent()
		}
	case errors.Is(err, requests.ErrEnded), errors.Is(err, requests.ErrNotOwner), errors.Is(err, dispatch.ErrHandedOver):
		ctx, cancel := execution.Detach(ctx)
		defer cancel()
		rec, err := s.router.cfg.Storage.Requests.Get(ctx, s.run.RequestID)
		if err != nil {
			return nil, store.CallerError(ctx, s.router.cfg.Logger, "the response cannot be read", err)
		}
		return rec.Snapshot(), nil
	case err == nil:
		promoted.Emit(&contract.Event{Type: contract.EventFinal, Response: resp})
	}
	return resp, err
}

// recordNotSent records the outcome of a request whose caller gets an error although the
// decision is on record. Without an outcome, it would count as interrupted, and its
// tasks as possibly executed.
func (s *syncOutcomeRecorder) recordNotSent() {
	outcomes := s.router.executor.NoneSent(s.plan, contract.TaskAgentUnavailable, "the router could not record that the task is sent")
	resp := s.plan.Response(s.run.Request.Request)
	s.plan.Aggregate(resp, outcomes)
	s.router.journal.RecordLater(history.EncodeResponse(s.run.Subject(), resp))
}

// close releases what a promoted request holds.
func (s *syncOutcomeRecorder) close() {
	if promoted := s.promoted.Load(); promoted != nil {
		promoted.Close()
	}
}
