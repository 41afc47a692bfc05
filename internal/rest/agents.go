package rest

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/visibility"
)

// AgentState is how an agent is at this moment.
type AgentState struct {
	Breaker   string    // "closed", "open" or "half_open"; "" = closed
	OpenUntil time.Time // zero unless the breaker is open
	InFlight  int       // tasks it is working on
	Disabled  bool
}

// Agent is an agent as it is declared and as it is.
type Agent struct {
	ID          string                 `json:"id"`
	Origin      string                 `json:"origin"`
	State       string                 `json:"state"`
	Breaker     Breaker                `json:"breaker"`
	InFlight    int                    `json:"in_flight"`
	MaxInFlight int                    `json:"max_in_flight"`
	Entry       contract.RegistryEntry `json:"entry"`
}

// Breaker is the state of an agent's breaker.
type Breaker struct {
	State     string     `json:"state"`
	OpenUntil *time.Time `json:"open_until"`
}

// AgentList is the answer of GET /api/v1/agents.
type AgentList struct {
	RegistryVersion string  `json:"registry_version"`
	Agents          []Agent `json:"agents"`
}

// The values of Agent.State, Agent.Origin and Breaker.State.
const (
	stateActive      = "active"
	stateBreakerOpen = "breaker_open"
	stateAtCapacity  = "at_capacity"
	stateDisabled    = "disabled"

	originFile         = "file"
	originRegistration = "registration"

	breakerClosed = "closed"
	breakerOpen   = "open"
)

func (s *Server) handleAgents(x *exchange, _ echo.Context) error {
	snapshot := s.deps.Registry()
	visible := visibility.Visible(snapshot.Catalogue, x.caller).List()
	list := AgentList{RegistryVersion: snapshot.Catalogue.Version, Agents: make([]Agent, len(visible))}
	for i, entry := range visible {
		list.Agents[i] = s.describe(snapshot.Entry(entry.ID), x.caller)
	}
	return s.writeJSON(x, http.StatusOK, typeJSON, list)
}

func (s *Server) handleAgent(x *exchange, c echo.Context) error {
	id := c.Param("id")
	entry := s.deps.Registry().Entry(id)
	// One answer for what does not exist and what the caller may not see.
	if entry == nil || !x.caller.MaySee(id) {
		return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such agent"}
	}
	return s.writeJSON(x, http.StatusOK, typeJSON, s.describe(entry, x.caller))
}

func (s *Server) describe(entry *contract.RegistryEntry, caller *contract.Caller) Agent {
	now := s.deps.AgentState(entry.ID)
	a := Agent{
		ID:          entry.ID,
		Origin:      originOf(entry),
		Breaker:     Breaker{State: now.Breaker},
		InFlight:    now.InFlight,
		MaxInFlight: entry.MaxInFlight,
		Entry:       visibility.FilterEntry(entry, caller),
	}
	if a.MaxInFlight == 0 {
		a.MaxInFlight = contract.DefaultMaxInFlight
	}
	if a.Breaker.State == "" {
		a.Breaker.State = breakerClosed
	}
	if !now.OpenUntil.IsZero() {
		until := now.OpenUntil.UTC()
		a.Breaker.OpenUntil = &until
	}
	switch {
	case now.Disabled:
		a.State = stateDisabled
	case a.Breaker.State == breakerOpen:
		a.State = stateBreakerOpen
	case a.InFlight >= a.MaxInFlight:
		a.State = stateAtCapacity
	default:
		a.State = stateActive
	}
	return a
}

func originOf(entry *contract.RegistryEntry) string {
	if entry.Origin == contract.OriginRegistration {
		return originRegistration
	}
	return originFile
}
