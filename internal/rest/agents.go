package rest

import (
	"net/http"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/visibility"
)

// AgentState is the current state of an agent.
type AgentState struct {
	Breaker   string              // "closed", "open" or "half_open"; "" = closed
	OpenUntil time.Time           // zero unless the breaker is open
	InFlight  int                 // tasks it is working on
	State     contract.AgentState // "" = active
}

// Agent is the registry entry of an agent and its current state.
type Agent struct {
	ID          string                 `json:"id"`
	Origin      string                 `json:"origin"`
	State       string                 `json:"state"`
	Breaker     Breaker                `json:"breaker"`
	InFlight    int                    `json:"in_flight"`
	MaxInFlight int                    `json:"max_in_flight"`
	Entry       contract.RegistryEntry `json:"entry"`
}

// Breaker is the circuit breaker of an agent.
type Breaker struct {
	State     string     `json:"state"`
	OpenUntil *time.Time `json:"open_until"`
}

// AgentList is the response of GET /api/v1/agents.
type AgentList struct {
	RegistryVersion string  `json:"registry_version"`
	FleetRevision   string  `json:"fleet_revision"`
	Agents          []Agent `json:"agents"`
}

// The values of Agent.State besides the contract.AgentState of an agent, of Agent.Origin and Breaker.State.
const (
	stateActive      = "active"
	stateBreakerOpen = "breaker_open"
	stateAtCapacity  = "at_capacity"

	originFile         = "file"
	originRegistration = "registration"

	breakerClosed = "closed"
	breakerOpen   = "open"
)

func (a *api) handleAgents(c *httpserver.Context) error {
	snapshot := a.deps.Registry()
	visible := visibility.Visible(snapshot.Catalogue, c.Caller).List()
	list := AgentList{RegistryVersion: snapshot.Catalogue.Version, FleetRevision: snapshot.Fleet.Revision, Agents: make([]Agent, len(visible))}
	for i, entry := range visible {
		list.Agents[i] = a.describeAgent(snapshot.Entry(entry.ID), c.Caller)
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, list)
}

func (a *api) handleAgent(c *httpserver.Context) error {
	id := c.PathParam("id")
	entry := a.deps.Registry().Entry(id)
	// The error is the same for an unknown agent and for one that the caller may not
	// see.
	if entry == nil || !visibility.MaySeeAgent(c.Caller, id) {
		return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such agent"}
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, a.describeAgent(entry, c.Caller))
}

func (a *api) describeAgent(entry *contract.RegistryEntry, caller *contract.Caller) Agent {
	now := a.deps.AgentState(entry.ID)
	agent := Agent{
		ID:          entry.ID,
		Origin:      originOf(entry),
		Breaker:     Breaker{State: now.Breaker},
		InFlight:    now.InFlight,
		MaxInFlight: entry.MaxInFlight,
		Entry:       visibility.FilterEntry(entry, caller),
	}
	if agent.MaxInFlight == 0 {
		agent.MaxInFlight = contract.DefaultMaxInFlight
	}
	if agent.Breaker.State == "" {
		agent.Breaker.State = breakerClosed
	}
	if !now.OpenUntil.IsZero() {
		until := now.OpenUntil.UTC()
		agent.Breaker.OpenUntil = &until
	}
	switch {
	case !takesTasks(now.State):
		agent.State = string(now.State)
	case agent.Breaker.State == breakerOpen:
		agent.State = stateBreakerOpen
	case agent.InFlight >= agent.MaxInFlight:
		agent.State = stateAtCapacity
	case now.State == contract.AgentDegraded:
		agent.State = string(now.State)
	default:
		agent.State = stateActive
	}
	return agent
}

// takesTasks reports whether an agent in the state gets tasks.
func takesTasks(state contract.AgentState) bool {
	return state == "" || state == contract.AgentActive || state == contract.AgentDegraded
}

func originOf(entry *contract.RegistryEntry) string {
	if entry.Origin == contract.OriginRegistration {
		return originRegistration
	}
	return originFile
}
