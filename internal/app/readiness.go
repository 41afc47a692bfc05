package app

import (
	"fmt"

	"github.com/caprouter/caprouter/internal/rest"
)

// agentState returns the live state of an agent.
func (c *serverCore) agentState(id string) rest.AgentState {
	s := c.dispatcher.AgentStatus(id)
	state := rest.AgentState{State: s.State, Breaker: s.Breaker, OpenUntil: s.OpenUntil, InFlight: s.InFlight}
	state.Polls, state.LastPoll = c.router.Callbacks().Offers().Polls(id)
	if agent := c.snapshot().Fleet.Agent(id); agent != nil {
		state.MissingCapabilities = c.mcp.MissingCapabilities(id, agent.MCPCapabilities)
		state.Uncallable = actionOf(agent) != "" && c.mcp.IsUncallable(id, actionOf(agent))
	}
	for _, i := range s.Instances {
		state.Instances = append(state.Instances, rest.InstanceState{Name: i.Name, Breaker: i.Breaker, OpenUntil: i.OpenUntil, InFlight: i.InFlight})
	}
	return state
}

// readiness reports whether requests are served, and on which version of the
// registry. If the registry is stale, requests are served and the status is
// degraded.
func (c *serverCore) readiness() rest.Readiness {
	registry := c.registry.Status()
	loadedAt := registry.LoadedAt.UTC()
	ready := rest.Readiness{
		Status:     rest.ReadinessReady,
		Registry:   rest.RegistryStatus{Version: c.snapshot().Catalogue.Version, LoadedAt: &loadedAt, Stale: registry.Err != nil},
		Classifier: c.classifierStatus(),
		Store:      c.storeStatus(),
		MCP:        newMCPStatus(c.mcp, c.publicErrorText),
	}
	if s := ready.MCP; s != nil && s.Stale {
		ready.Status = rest.ReadinessDegraded
	}
	if !ready.Store.Ready {
		ready.Status = rest.ReadinessDegraded
	}
	if err := c.persistence.events.Err(); err != nil {
		ready.Status = rest.ReadinessDegraded
		if ready.Store.Error == "" {
			ready.Store.Error = c.publicErrorText(fmt.Errorf("events cannot be published: %w", err))
		}
	}
	if registry.Err != nil {
		ready.Status = rest.ReadinessDegraded
		ready.Registry.Error = c.publicErrorText(registry.Err)
	}
	if err := c.access.lastError.Load(); err != nil {
		ready.Status = rest.ReadinessDegraded
		ready.Keys = &rest.KeysStatus{Stale: true, Error: c.publicErrorText(*err)}
	}
	if c.router.View() == nil {
		ready.Status = rest.ReadinessStarting // until the first lexical model is trained
	}
	return ready
}

// publicErrorText returns the text of an error for responses that need no token. If
// callers have tokens, it omits the error, which may contain files, agents and tenants.
func (c *serverCore) publicErrorText(err error) string {
	if c.access.verifier != nil {
		return "see the log for the error"
	}
	return err.Error()
}

// classifierStatus reports how requests are classified. A failing model does not affect
// the readiness, because the lexical classifier replaces it.
func (c *serverCore) classifierStatus() rest.ClassifierStatus {
	var s rest.ClassifierStatus
	s.Mode, s.Reason = c.classifierMode()
	if c.model != nil {
		s.Model = &rest.ModelStatus{Provider: c.model.Provider(), Model: c.model.Model(), Breaker: c.model.BreakerState()}
	}
	return s
}

// storeStatus reports whether the store accepts writes. If it does not, stored answers
// can still be read.
func (c *serverCore) storeStatus() *rest.StoreStatus {
	s := c.persistence.store.Status()
	status := &rest.StoreStatus{Mode: s.Mode, Ready: s.Ready && s.Err == nil, UsedBytes: s.Used, CapBytes: s.Cap, Replicas: c.persistence.members.CountLive()}
	if s.Err != nil {
		status.Error = c.publicErrorText(s.Err)
	}
	return status
}
