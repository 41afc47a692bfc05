package router

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/router/plan"
)

// recorder makes the decision and the response of one request durable.
type recorder interface {
	// RecordDecision is called before any task is sent. If it returns an error, no
	// task is sent.
	RecordDecision(ctx context.Context, p *plan.Plan) error

	// RecordOutcome returns the response that counts. executed reports whether the
	// plan was executed, so that an error could not undo anything.
	RecordOutcome(ctx context.Context, resp *contract.Response, executed bool) (*contract.Response, error)
}

// noRecorder is the recorder of dry runs, which change nothing.
type noRecorder struct{}

func (noRecorder) RecordDecision(context.Context, *plan.Plan) error { return nil }

func (noRecorder) RecordOutcome(_ context.Context, resp *contract.Response, _ bool) (*contract.Response, error) {
	return resp, nil
}

// syncRecorder is the recorder of synchronous requests: they are recorded in the
// audit log and in their idempotency keys.
type syncRecorder struct {
	journal *history.Journal
	keys    keyReserver
	run     *requestRun
}

func (s *syncRecorder) RecordDecision(ctx context.Context, p *plan.Plan) error {
	ctx, cancel := s.run.detachedContext(ctx)
	defer cancel()
	if err := s.journal.RecordDecision(ctx, s.run.Subject(), s.run.Request.Request, &p.Decision); err != nil {
		return err
	}
	// After the decision: a key that is started always has a record of its request,
	// also if the process ends in between.
	return s.keys.Start(ctx, s.run.reservation, s.run.RequestID)
}

func (s *syncRecorder) RecordOutcome(ctx context.Context, resp *contract.Response, executed bool) (*contract.Response, error) {
	ctx, cancel := s.run.detachedContext(ctx)
	defer cancel()
	if err := s.journal.RecordResponse(ctx, s.run.Subject(), resp); err != nil && !executed {
		return nil, err // nothing was done, so the caller may try again
	}
	s.keys.End(ctx, s.run.reservation, resp)
	return resp, nil
}
