package gateway

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// AgentNeeds is what an agent needs of the servers.
type AgentNeeds struct {
	ID           string
	Capabilities []string // its mcp_capabilities
	Action       string   // the tool that the agent is; "" = none
}

// CheckAgents binds all capabilities that the agents declare, and checks whether their
// actions can be called, now and when a server or its tools change. A change of the state is
// an AgentBriefingEvent and logged. Actions of other agents are removed, and so are
// capabilities that Config.Capabilities does not return any more. A server that is being
// connected for the first time, or starts lazily, is expected to provide what it declares.
func (g *Gateway) CheckAgents(agents []AgentNeeds) {
	b := g.bindings
	b.mu.Lock()
	for key, binding := range b.all {
		if binding.checked = false; key.action != "" {
			binding.declared = nil
		}
	}
	for i := range agents {
		a := &agents[i]
		for _, capability := range a.Capabilities {
			b.put(bindingKey{agent: a.ID, capability: capability}).checked = true
		}
		if a.Action != "" {
			binding := b.put(bindingKey{agent: a.ID, action: a.Action})
			binding.checked, binding.declared = true, a.Capabilities
		}
	}
	for key, binding := range b.all {
		if key.action != "" && !binding.checked {
			delete(b.all, key)
		}
	}
	b.mu.Unlock()
	b.update()
}

// MissingCapabilities returns those capabilities of the agent that no server provides, as of
// the latest check.
func (g *Gateway) MissingCapabilities(agentID string, capabilities []string) (missing []string) {
	for _, c := range capabilities {
		if g.bindings.isDegraded(bindingKey{agent: agentID, capability: c}) {
			missing = append(missing, c)
		}
	}
	return missing
}

// IsUncallable reports whether the action of the agent cannot be called, as of the latest
// check.
func (g *Gateway) IsUncallable(agentID, action string) bool {
	return g.bindings.isDegraded(bindingKey{agent: agentID, action: action})
}

func (b *bindings) isDegraded(key bindingKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	binding := b.all[key]
	return binding != nil && binding.State == contract.BindingDegraded
}

// actionProblem is why an action cannot be called. The zero value is no problem.
type actionProblem struct {
	error      string
	suggestion string
	missing    bool   // no server has the action
	similar    string // an action that may be meant if it is missing; "" = none
}

// findActionProblem returns why an agent with the mcp_capabilities cannot call the action.
// What is not known yet is no problem. An agent that declares none may call every action.
func (g *Gateway) findActionProblem(action string, declared []string) (p actionProblem) {
	var owners []*server
	for _, s := range *g.servers.Load() {
		name, ok := strings.CutPrefix(action, s.declared.ID+".")
		if !ok {
			continue
		}
		t, known := s.knownTool(name)
		switch available, _, reason := s.availability(); {
		case !available && len(owners) == 0:
			p.error = fmt.Sprintf("server %q is not connected: %s", s.declared.ID, reason)
		case available && !known:
			return actionProblem{}
		case available && t != nil:
			owners = append(owners, s)
			p = s.findToolProblem(t, declared)
		}
	}
	switch {
	case len(owners) > 1:
		return actionProblem{
			error:      fmt.Sprintf("it is a tool of the servers %q and %q", owners[0].declared.ID, owners[1].declared.ID),
			suggestion: "rename one of the servers",
		}
	case len(owners) == 1 || p.error != "":
		return p
	}
	p = actionProblem{error: "no MCP server has the action", missing: true, similar: nearestAction(action, g.actionNames())}
	if p.similar != "" {
		p.suggestion = fmt.Sprintf("did you mean %s?", p.similar)
	}
	return p
}

// findToolProblem returns why an agent with the mcp_capabilities cannot call the tool. A tool
// in quarantine is no problem: another process may approve it, and only a call notices that.
func (s *server) findToolProblem(t *tool, declared []string) actionProblem {
	switch {
	case len(declared) > 0 && !Permits(declared, s.declared.Capabilities):
		return actionProblem{
			error: fmt.Sprintf("the agent declares no capability that the server %q provides", s.declared.ID), suggestion: s.suggestCapability(),
		}
	case t.Error != "":
		return actionProblem{error: t.Error}
	}
	return actionProblem{}
}
