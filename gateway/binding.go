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

// Binding connects a capability that an agent needs with the server that provides it, or an
// agent that is a tool with the server of its action.
type Binding struct {
	AgentID    string    `json:"agent_id"`
	Capability string    `json:"capability,omitempty"` // "" for an action
	Action     string    `json:"action,omitempty"`     // "" for a capability
	State      string    `json:"state"`                // contract.BindingBound or BindingDegraded
	Server     string    `json:"server,omitempty"`     // "" if degraded, and for an action
	Error      string    `json:"error,omitempty"`      // why the action cannot be called
	Tools      []Tool    `json:"tools,omitempty"`      // of the server
	Suggestion string    `json:"suggestion,omitempty"`
	At         time.Time `json:"at"` // of the latest change of the state
}

// Bind returns the server that provides a capability for an agent, and remembers the
// binding: when its state changes, subscribers receive an AgentBriefingEvent. Of one agent,
// the 100 latest bindings are remembered, in addition to those of CheckAgents. The error is a
// *contract.ActionError with ActionForbidden if the agent does not declare the capability.
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

// bindingKey identifies a binding. Either capability or action is "".
type bindingKey struct{ agent, capability, action string }

// maxBindings bounds the bindings of one agent, because there are any number of capabilities
// below gis:*.
const maxBindings = 100

// bindings are the bindings in use.
type bindings struct {
	gateway *Gateway

	mu      sync.Mutex
	all     map[bindingKey]*rememberedBinding
	counter uint64               // number of calls of add
	changed []*rememberedBinding // whose change of the state is not logged yet
}

// rememberedBinding is a binding with the number of the latest add that returned it.
type rememberedBinding struct {
	Binding
	added    uint64
	checked  bool     // by CheckAgents: it is not removed for another one
	declared []string // mcp_capabilities of the agent, for an action; nil = they limit nothing
	problem  actionProblem
}

func newBindings(g *Gateway) *bindings {
	return &bindings{gateway: g, all: map[bindingKey]*rememberedBinding{}}
}

// add returns the binding, and creates it if it is new. If the agent has too many, the one
// that was added longest ago is removed.
func (b *bindings) add(agent, capability string) Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := bindingKey{agent: agent, capability: capability}
	if b.all[key] == nil {
		b.limit(agent)
	}
	binding := b.put(key)
	b.counter++
	binding.added = b.counter
	b.choose(binding)
	b.report()
	return binding.Binding
}

// put returns the binding, and creates it if it is new. The caller holds mu.
func (b *bindings) put(key bindingKey) *rememberedBinding {
	binding := b.all[key]
	if binding == nil {
		// A binding begins in the state BOUND, so that only its absence is an event.
		binding = &rememberedBinding{Binding: Binding{
			AgentID: key.agent, Capability: key.capability, Action: key.action, State: contract.BindingBound, At: time.Now().UTC(),
		}}
		b.all[key] = binding
	}
	return binding
}

// limit removes a binding of the agent if it has the maximum. The caller holds mu.
func (b *bindings) limit(agent string) {
	count := 0
	var oldest bindingKey
	for key, binding := range b.all {
		if key.agent != agent || binding.checked {
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
	defer b.gateway.changes.Broadcast()
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, binding := range b.all {
		if !b.isDeclared(key) {
			delete(b.all, key)
			continue
		}
		b.choose(binding)
	}
	b.report()
}

// isDeclared reports whether the agent of the binding still declares the capability. The
// binding of an action stays until the next check of the agents.
func (b *bindings) isDeclared(key bindingKey) bool {
	if key.action != "" {
		return true
	}
	declared, ok := b.gateway.cfg.Capabilities(key.agent)
	return ok && coversAny(declared, key.capability)
}

// choose sets the server of the binding. It emits an event and adds the binding to changed
// if its state is another one. The caller holds mu.
func (b *bindings) choose(binding *rememberedBinding) {
	state := contract.BindingBound
	if binding.Action != "" {
		binding.problem = b.gateway.findActionProblem(binding.Action, binding.declared)
		binding.Error, binding.Suggestion = binding.problem.error, binding.problem.suggestion
		if binding.Error != "" {
			state = contract.BindingDegraded
		}
	} else if binding.Server, binding.Suggestion = b.gateway.findProvider(binding.Capability); binding.Server == "" {
		state = contract.BindingDegraded
	}
	if binding.State == state {
		return
	}
	binding.State, binding.At = state, time.Now().UTC()
	b.changed = append(b.changed, binding)
	event := binding.Event()
	if state == contract.BindingBound && binding.Action == "" {
		event.Suggestion = fmt.Sprintf("server %q provides the capability again", binding.Server)
	}
	b.gateway.events.emit(event)
}

// Event returns the state of the binding as an event.
func (b *Binding) Event() contract.GatewayEvent {
	return contract.GatewayEvent{
		Type: contract.AgentBriefingEvent, AgentID: b.AgentID, Capability: b.Capability, Tool: b.Action, State: b.State,
		Error: b.Error, Suggestion: b.Suggestion, At: b.At,
	}
}

// report logs the bindings whose state has changed. The caller holds mu.
func (b *bindings) report() {
	changed := b.changed
	b.changed = nil
	slices.SortFunc(changed, func(x, y *rememberedBinding) int { return compareBindings(&x.Binding, &y.Binding) })
	log := b.gateway.cfg.Client.Logger
	for _, c := range changed[:min(len(changed), maxLogged)] {
		switch degraded := c.State == contract.BindingDegraded; {
		case degraded && c.problem.missing:
			attributes := []any{"agent", c.AgentID, "action", c.Action}
			if c.problem.similar != "" {
				attributes = append(attributes, "did_you_mean", c.problem.similar)
			}
			log.Warn("no MCP server has the action of an agent", attributes...)
		case degraded && c.Action != "":
			log.Warn("the action of an agent cannot be called", "agent", c.AgentID, "action", c.Action, "error", c.Error, "suggestion", c.Suggestion)
		case degraded:
			log.Warn("no MCP server provides a capability of an agent", "agent", c.AgentID, "capability", c.Capability, "suggestion", c.Suggestion)
		case c.Action != "":
			log.Info("the action of an agent can be called again", "agent", c.AgentID, "action", c.Action)
		default:
			log.Info("an MCP server provides a capability of an agent again", "agent", c.AgentID, "capability", c.Capability, "server", c.Server)
		}
	}
	if further := len(changed) - maxLogged; further > 0 {
		log.Warn("further capabilities or actions of agents have changed their state", "bindings", further)
	}
}

func compareBindings(x, y *Binding) int {
	return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(x.Capability, y.Capability), cmp.Compare(x.Action, y.Action))
}

func (b *bindings) list() []Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Binding, 0, len(b.all))
	for _, binding := range b.all {
		list = append(list, binding.Binding)
	}
	slices.SortFunc(list, func(x, y Binding) int { return compareBindings(&x, &y) })
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
		if !Permits([]string{capability}, s.declared.Capabilities) {
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
