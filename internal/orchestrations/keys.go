package orchestrations

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/orchestrator"
)

// keyedRuns finds the run of an idempotency key. It implements idempotency.Requests: the
// response of a run has only its id.
type keyedRuns struct{ store *runStore }

// ReplayState implements idempotency.Requests.
func (k keyedRuns) ReplayState(ctx context.Context, id string) (idempotency.State, func() (*contract.Response, error), error) {
	if _, err := k.store.get(ctx, id); err != nil {
		return 0, nil, err
	}
	return idempotency.Stored, func() (*contract.Response, error) { return &contract.Response{RequestID: id}, nil }, nil
}

// Resume implements idempotency.Requests. No run is orphaned: a replica that is live takes
// over those of the others.
func (keyedRuns) Resume(context.Context, string) error { return nil }

// reserveKey reserves the idempotency key of a submission. If it was sent before, it returns
// the id of its run.
func (s *Service) reserveKey(ctx context.Context, sub *Submission) (reservation idempotency.Reservation, first string, err error) {
	if sub.Idempotency == nil {
		return idempotency.Reservation{}, "", nil
	}
	reservation, stored, err := s.keys.Reserve(ctx, sub.Caller, sub.Idempotency, sub.ID)
	if err == nil && stored != nil {
		first = stored.RequestID
	}
	return reservation, first, err
}

// recordEnd records the end of a run in its idempotency key, which still reports it when the
// run is not stored any more.
func (s *Service) recordEnd(ctx context.Context, rec *orchestrator.Record) {
	s.keys.RecordEnd(ctx, idempotency.RestoreReservation(rec.KeyName), &contract.EndedRequest{RequestID: rec.ID, Status: requestStatus(rec), EndedAt: rec.EndedAt})
}
