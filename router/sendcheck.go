package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router/plan"
)

// sendCheck decides before each send of a task whether the agent may get it: a request
// may wait for an agent, for a retry or for a restart, and the registry may change
// meanwhile. It implements execution.Registry.
type sendCheck struct {
	run       *requestRun
	plan      *plan.Plan
	isRevoked func(*contract.Caller) bool
}

// Entry implements execution.Registry.
func (s *sendCheck) Entry(agentID string) *contract.RegistryEntry {
	return s.run.current.get().Fleet.Agent(agentID)
}

// Eligible implements execution.Registry. It costs a lookup if the registry is still that
// of the plan.
func (s *sendCheck) Eligible(part *plan.Part, agentID string) (*contract.RegistryEntry, *contract.TaskError) {
	view := s.run.current.get()
	entry := view.Fleet.Agent(agentID)
	switch {
	case entry == nil:
		return nil, &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: agentID + " is not registered any more"}
	case s.isRevoked(s.run.Caller):
		return nil, &contract.TaskError{Code: contract.TaskWasCancelled, Detail: agentID + " does not get the task: " + keyRevoked}
	case view == s.run.planned:
		return entry, nil
	}
	if reason := plan.Recheck(s.run.planInput(view, s.plan.Decision.Classification), part, agentID); reason != "" {
		return nil, &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: agentID + " " + reason}
	}
	return entry, nil
}

// Changed implements execution.Registry.
func (s *sendCheck) Changed() <-chan struct{} { return s.run.current.changed() }

const keyRevoked = "the key of the caller's token was revoked"

// StopRevoked ends the requests in flight whose caller's key is revoked. A stored request
// whose end cannot be recorded now is left to the next call: if only its context ended, it
// would stay open, and no process would resume it.
func (r *Router) StopRevoked(ctx context.Context) {
	for _, request := range r.inflight.OfCallers(r.cfg.IsRevoked) {
		_, err := r.async.CancelStored(ctx, request.ID(), keyRevoked)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, requests.ErrEnded) {
			request.Cancel(inflight.ErrCancelled)
		}
	}
}
