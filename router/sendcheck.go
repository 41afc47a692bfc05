package router

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
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
func (s *sendCheck) Changed() <-chan struct{} { return s.run.current.changes.Next() }

// PulledTask implements pulltarget.TaskSource: any process with the store can give a task
// to its agent, so the request is restored from its record. The registry in force decides
// if the agent may get it.
func (r *Router) PulledTask(rec *requests.Record, task *requests.Task) (pulled contract.Task, reason string) {
	restored := plan.Restore(rec)
	if task.Part >= len(restored.Parts) {
		return pulled, "the request has no such task"
	}
	part := &restored.Parts[task.Part]
	run := asyncPipeline{r}.restoreRun(rec)
	agent, refusal := (&sendCheck{run, restored, r.cfg.IsRevoked}).Eligible(part, task.AgentID)
	switch {
	case agent == nil:
		return pulled, refusal.Detail
	case agent.Endpoint.Protocol != contract.ProtocolPull:
		return pulled, task.AgentID + " does not pull its tasks any more"
	}
	return execution.PulledTask(run.Request, part, agent), ""
}
