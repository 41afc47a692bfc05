package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Binding connects a capability that an agent needs with the server that provides it.
type Binding struct {
	AgentID    string    `json:"agent_id"`
	Capability string    `json:"capability"`
	State      string    `json:"state"`            // contract.BindingBound or BindingDegraded
	Server     string    `json:"server,omitempty"` // "" if degraded
	Tools      []Tool    `json:"tools,omitempty"`  // of the server
	Suggestion string    `json:"suggestion,omitempty"`
	At         time.Time `json:"at"` // of the latest change of the state
}

// Bind returns the server that provides a capability for an agent, and remembers the
// binding: when its state changes, subscribers receive an AgentBriefingEvent. Of one agent,
// the 100 latest bindings are remembered. The error is a *contract.ActionError with
// ActionForbidden if the agent does not declare the capability.
func (g *Gateway) Bind(agentID, capability string) (Binding, error) {
	declared, ok := g.cfg.Capabilities(agentID)
	if !ok || !coversAny(declared, capability) {
		return Binding{}, severeError(contract.ActionForbidden, fmt.Sprintf("agent %q does not declare the capability %q", agentID, capability), "add it to mcp_capabilities of the agent")
	}
	b := g.bindings.add(agentID, capability)
	if s := g.find(b.Server); s != nil {
		s.demandStart()
		b.Tools = s.info().Tools
	}
	return b, nil
}

// Bindings returns all bindings, ordered by agent and capability, without the tools.
func (g *Gateway) Bindings() []Binding { return g.bindings.list() }

// RefreshBindings removes the bindings of agents that no longer declare the capability. Call
// it after a change of the agents.
func (g *Gateway) RefreshBindings() { g.bindings.update() }

// bindingKey identifies a binding.
type bindingKey struct{ agent, capability string }

// maxBindings bounds the bindings of one agent, because there are any number of capabilities
// below gis:*.
const maxBindings = 100

// bindings are the bindings in use.
type bindings struct {
	gateway *Gateway

	mu      sync.Mutex
	all     map[bindingKey]*rememberedBinding
	counter uint64 // number of calls of add
}

// rememberedBinding is a binding with the number of the latest add that returned it.
type rememberedBinding struct {
	Binding
	added uint64
}

func newBindings(g *Gateway) *bindings {
	return &bindings{gateway: g, all: map[bindingKey]*rememberedBinding{}}
}

// add returns the binding, and creates it if it is new. If the agent has too many, the one
// that was added longest ago is removed.
func (b *bindings) add(agent, capability string) Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := bindingKey{agent, capability}
	binding := b.all[key]
	if binding == nil {
		b.limit(agent)
		// A binding begins in the state BOUND, so that only its absence is an event.
		binding = &rememberedBinding{Binding: Binding{AgentID: agent, Capability: capability, State: contract.BindingBound, At: time.Now().UTC()}}
		b.all[key] = binding
	}
	b.counter++
	binding.added = b.counter
	b.choose(&binding.Binding)
	return binding.Binding
}

// limit removes a binding of the agent if it has the maximum. The caller holds mu.
func (b *bindings) limit(agent string) {
	count := 0
	var oldest bindingKey
	for key, binding := range b.all {
		if key.agent != agent {
			continue
		}
		if count++; count == 1 || binding.added < b.all[oldest].added {
			oldest = key
		}
	}
	if count >= maxBindings {
		delete(b.all, oldest)
	}
}

// update chooses the servers of all bindings again.
func (b *bindings) update() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, binding := range b.all {
		if declared, ok := b.gateway.cfg.Capabilities(key.agent); !ok || !coversAny(declared, key.capability) {
			delete(b.all, key)
			continue
		}
		b.choose(&binding.Binding)
	}
}

// choose sets the server of the binding and reports a change of its state. The caller
// holds mu.
func (b *bindings) choose(binding *Binding) {
	state := contract.BindingBound
	binding.Server, binding.Suggestion = b.gateway.findProvider(binding.Capability)
	if binding.Server == "" {
		state = contract.BindingDegraded
	}
	if binding.State == state {
		return
	}
	binding.State, binding.At = state, time.Now().UTC()
	suggestion := binding.Suggestion
	if state == contract.BindingBound {
		suggestion = fmt.Sprintf("server %q provides the capability again", binding.Server)
	}
	b.gateway.cfg.Client.Logger.Warn("binding of a capability changed", "agent", binding.AgentID, "capability", binding.Capability, "state", state)
	b.gateway.events.emit(contract.GatewayEvent{
		Type: contract.AgentBriefingEvent, AgentID: binding.AgentID, Capability: binding.Capability, State: state, Suggestion: suggestion,
	})
}

func (b *bindings) list() []Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Binding, 0, len(b.all))
	for _, binding := range b.all {
		list = append(list, binding.Binding)
	}
	slices.SortFunc(list, func(x, y Binding) int {
		return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(x.Capability, y.Capability))
	})
	return list
}

// findProvider returns the id of the best server with the capability, or a suggestion.
func (g *Gateway) findProvider(capability string) (id, suggestion string) {
	type provider struct {
		id       string
		priority int
		degraded bool
	}
	var best *provider
	suggestion = fmt.Sprintf("add a server with the capability %q", capability)
	for _, s := range *g.servers.Load() {
		if !coversAny(s.declared.Capabilities, capability) {
			continue
		}
		available, degraded, reason := s.availability()
		if !available {
			suggestion = fmt.Sprintf("server %q provides the capability and is not connected: %s", s.declared.ID, reason)
			continue
		}
		p := &provider{s.declared.ID, s.declared.Priority, degraded}
		// The servers are in the order of their ids.
		if best == nil || p.priority > best.priority || p.priority == best.priority && best.degraded && !p.degraded {
			best = p
		}
	}
	if best == nil {
		return "", suggestion
	}
	return best.id, ""
}

// coversAny reports whether one of the declared capabilities includes the other one.
func coversAny(declared []string, capability string) bool {
	return slices.ContainsFunc(declared, func(d string) bool {
		if d == capability {
			return true
		}
		domain, all := strings.CutSuffix(d, "*")
		return all && strings.HasSuffix(domain, ":") && strings.HasPrefix(capability, domain) && capability != domain
	})
}

// Permits reports whether an agent that declares mcp_capabilities may call tools of a server
// that provides others: whether they have one in common.
func Permits(declared, provided []string) bool {
	return slices.ContainsFunc(provided, func(p string) bool {
		return coversAny(declared, p) || slices.ContainsFunc(declared, func(d string) bool { return coversAny([]string{p}, d) })
	})
}

// PermitsAgent reports whether the agent may call tools of the server.
func (g *Gateway) PermitsAgent(agentID string, s *ServerInfo) bool {
	declared, ok := g.cfg.Capabilities(agentID)
	return ok && Permits(declared, s.Capabilities)
}
