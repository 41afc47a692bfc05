package rest

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/visibility"
)

// AgentState is the live state of an agent.
type AgentState struct {
	State     contract.AgentState // "" = active
	Breaker   string              // "closed", "open" or "half_open"; "" = closed
	OpenUntil time.Time           // zero unless the breaker is open
	InFlight  int                 // tasks it is working on
	Instances []InstanceState     // of a registered agent
	Polls     int                 // that wait for a task of an agent that pulls, at this process
	LastPoll  time.Time           // the latest of them; zero = none since the start

	MissingCapabilities []string // its mcp_capabilities that no MCP server provides
	Uncallable          bool     // the action of its endpoint cannot be called
}

// InstanceState is the live state of an instance.
type InstanceState struct {
	Name      string
	Breaker   string    // as in AgentState
	OpenUntil time.Time // as in AgentState
	InFlight  int
}

// Agent is the registry entry of an agent and its current state.
type Agent struct {
	ID          string                 `json:"id"`
	Origin      string                 `json:"origin"`
	State       contract.AgentState    `json:"state"`
	Reasons     []string               `json:"reasons"`
	Breaker     Breaker                `json:"breaker"`
	InFlight    int                    `json:"in_flight"`
	MaxInFlight int                    `json:"max_in_flight"`
	Instances   []Instance             `json:"instances,omitempty"`            // of a registered agent, by name
	Polling     *Polling               `json:"polling,omitempty"`              // of an agent that pulls its tasks
	Refused     []string               `json:"refused,omitempty"`              // what it declares and is not granted
	Missing     []string               `json:"missing_capabilities,omitempty"` // its mcp_capabilities that no MCP server provides
	Entry       contract.RegistryEntry `json:"entry"`
}

// Instance is one process of a registered agent.
type Instance struct {
	Name        string              `json:"name"`
	State       contract.AgentState `json:"state"`
	ExpiresAt   time.Time           `json:"expires_at"`
	URL         string              `json:"url,omitempty"` // only for callers that see every agent
	Breaker     Breaker             `json:"breaker"`
	InFlight    int                 `json:"in_flight"`
	MaxInFlight int                 `json:"max_in_flight"`
}

// Polling is what this process has seen of the workers of an agent that pulls its tasks.
type Polling struct {
	Polls      int        `json:"polls"`        // that wait for a task
	LastPollAt *time.Time `json:"last_poll_at"` // nil = none since the start
}

// newPolling returns nil for an agent that does not pull its tasks.
func newPolling(entry *contract.RegistryEntry, live *AgentState) *Polling {
	if entry.Endpoint.Protocol != contract.ProtocolPull {
		return nil
	}
	p := &Polling{Polls: live.Polls}
	if !live.LastPoll.IsZero() {
		p.LastPollAt = new(live.LastPoll.UTC())
	}
	return p
}

// Breaker is the circuit breaker of an agent, or of one of its instances.
type Breaker struct {
	State     string     `json:"state"`
	OpenUntil *time.Time `json:"open_until"`
}

// newBreaker returns the breaker with the state, of which "" is closed.
func newBreaker(state string, openUntil time.Time) Breaker {
	b := Breaker{State: cmp.Or(state, breakerClosed)}
	if !openUntil.IsZero() {
		b.OpenUntil = new(openUntil.UTC())
	}
	return b
}

// AgentList is the response of GET /api/v1/agents.
type AgentList struct {
	RegistryVersion string  `json:"registry_version"`
	FleetRevision   string  `json:"fleet_revision"`
	Agents          []Agent `json:"agents"`
}

// The values of Agent.Reasons, Agent.Origin and Breaker.State.
const (
	reasonBreakerOpen = "breaker_open"
	reasonAtCapacity  = "at_capacity"
	reasonCapability  = "capability_missing"
	reasonAction      = "action_unavailable"

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
	live := a.deps.AgentState(entry.ID)
	agent := Agent{
		ID:          entry.ID,
		Origin:      originOf(entry),
		State:       cmp.Or(live.State, contract.AgentActive),
		Reasons:     []string{},
		Breaker:     newBreaker(live.Breaker, live.OpenUntil),
		InFlight:    live.InFlight,
		MaxInFlight: cmp.Or(entry.MaxInFlight, contract.DefaultMaxInFlight),
		Instances:   a.describeInstances(entry, live.Instances, caller),
		Polling:     newPolling(entry, &live),
		Refused:     a.deps.Registry().Fleet.Refused[entry.ID],
		Missing:     live.MissingCapabilities,
		Entry:       visibility.FilterEntry(entry, caller),
	}
	if agent.Breaker.State == breakerOpen {
		agent.Reasons = append(agent.Reasons, reasonBreakerOpen)
	}
	if live.Uncallable {
		agent.Reasons = append(agent.Reasons, reasonAction)
	}
	if len(live.MissingCapabilities) > 0 {
		agent.Reasons = append(agent.Reasons, reasonCapability)
	}
	if len(agent.Reasons) > 0 && agent.State == contract.AgentActive {
		agent.State = contract.AgentDegraded
	}
	if agent.Origin == originRegistration && len(entry.Match.Intent) == 0 {
		agent.Reasons = append(agent.Reasons, contract.ReasonNothingGranted)
	}
	if countedTasks(&agent) >= agent.MaxInFlight {
		agent.Reasons = append(agent.Reasons, reasonAtCapacity)
	}
	return agent
}

// countedTasks returns how many tasks count for the limit of the agent. Tasks of an
// instance that is not active do not, because the limit is that of the active ones.
func countedTasks(a *Agent) int {
	if len(a.Instances) == 0 {
		return a.InFlight
	}
	n := 0
	for i := range a.Instances {
		if a.Instances[i].State == contract.AgentActive {
			n += a.Instances[i].InFlight
		}
	}
	return n
}

// describeInstances returns the instances of an agent, with their leases.
func (a *api) describeInstances(entry *contract.RegistryEntry, live []InstanceState, caller *contract.Caller) []Instance {
	if len(entry.Instances) == 0 {
		return nil
	}
	expires := map[string]time.Time{}
	for _, lease := range a.deps.Fleet.Leases(entry.ID) {
		expires[lease.Instance] = lease.ExpiresAt
	}
	instances := make([]Instance, len(entry.Instances))
	for i, declared := range entry.Instances {
		var state InstanceState
		if at := slices.IndexFunc(live, func(s InstanceState) bool { return s.Name == declared.Name }); at >= 0 {
			state = live[at]
		}
		instances[i] = Instance{
			Name: declared.Name, State: declared.State, ExpiresAt: expires[declared.Name], Breaker: newBreaker(state.Breaker, state.OpenUntil),
			InFlight: state.InFlight, MaxInFlight: cmp.Or(declared.MaxInFlight, contract.DefaultMaxInFlight),
		}
		if caller.SeesAll() {
			instances[i].URL = declared.Endpoint.URL
		}
	}
	return instances
}

func originOf(entry *contract.RegistryEntry) string {
	if entry.Origin == contract.OriginRegistration {
		return originRegistration
	}
	return originFile
}
