package app

import (
	"context"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/router"
)

// agentCheck checks which MCP servers provide the capabilities and actions of agents. The
// gateway reports what is missing. An agent whose action cannot be called gets no tasks.
type agentCheck struct {
	host       *mcphost.Host
	dispatcher *dispatch.Dispatcher
	view       func() *router.View // returns nil before the first one
	changed    chan struct{}       // receives after a View was installed
}

func newAgentCheck(c *serverCore) *agentCheck {
	return &agentCheck{host: c.mcp, dispatcher: c.dispatcher, view: c.router.View, changed: make(chan struct{}, 1)}
}

// viewInstalled does not block.
func (a *agentCheck) viewInstalled() {
	select {
	case a.changed <- struct{}{}:
	default: // the last change is not read yet
	}
}

// statusEvents is the number of events of servers that may wait for the check. Later ones
// replace them: the check reads the state of all servers.
const statusEvents = 1

// run checks the agents when the servers have been tried, when the state of a server or of a
// capability changes, and when a View is installed. It returns when the context ends.
func (a *agentCheck) run(ctx context.Context) error {
	events := a.host.Subscribe(statusEvents)
	defer events.Close()
	a.host.WaitReady(ctx)
	var uncallable []string
	for {
		uncallable = a.check(uncallable)
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		case _, open := <-events.Events():
			if !open {
				return nil
			}
		}
	}
}

// check checks the agents of the View, and returns those whose action cannot be called.
// before are those of the previous check.
func (a *agentCheck) check(before []string) (uncallable []string) {
	view := a.view()
	if view == nil {
		return before
	}
	var needs []gateway.AgentNeeds
	for _, agent := range view.Fleet.Agents {
		if n := (gateway.AgentNeeds{ID: agent.ID, Capabilities: agent.MCPCapabilities, Action: actionOf(agent)}); n.Action != "" || len(n.Capabilities) > 0 {
			needs = append(needs, n)
		}
	}
	a.host.CheckAgents(needs)
	for i := range needs {
		if n := &needs[i]; n.Action != "" && a.host.IsUncallable(n.ID, n.Action) {
			a.dispatcher.SetCallable(n.ID, false)
			uncallable = append(uncallable, n.ID)
		}
	}
	for _, id := range before {
		if !slices.Contains(uncallable, id) { // it may have another protocol now
			a.dispatcher.SetCallable(id, true)
		}
	}
	return uncallable
}

// actionOf returns the action of an agent that is a tool, "" for any other.
func actionOf(agent *contract.RegistryEntry) string {
	if agent.Endpoint.Protocol != contract.ProtocolMCP {
		return ""
	}
	return agent.Endpoint.Action
}
