package app

import (
	"context"
	"log/slog"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/router"
)

// actionCheck logs the agents whose action no MCP server has.
type actionCheck struct {
	host    *mcphost.Host
	view    func() *router.View // returns nil before the first one
	log     *slog.Logger
	changed chan struct{} // receives after a View was installed
}

func newActionCheck(c *core) *actionCheck {
	return &actionCheck{host: c.mcp, view: c.router.View, log: c.log, changed: make(chan struct{}, 1)}
}

// viewInstalled does not block.
func (a *actionCheck) viewInstalled() {
	select {
	case a.changed <- struct{}{}:
	default: // the last change is not read yet
	}
}

// statusEvents is the number of events of servers that may wait for the check of actions.
// Later ones replace them: the check reads the state of all servers.
const statusEvents = 1

// run logs each missing action once: when the servers have been tried, when the state of a
// server changes, and when a View is installed. It returns when the context ends.
func (a *actionCheck) run(ctx context.Context) error {
	events := a.host.Subscribe(statusEvents)
	defer events.Close()
	a.host.WaitReady(ctx)
	var warned map[string]bool
	for {
		warned = a.warnOfMissing(ctx, warned)
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

// warnOfMissing logs the agents whose action no server has, except those of warned, and
// returns all of them.
func (a *actionCheck) warnOfMissing(ctx context.Context, warned map[string]bool) map[string]bool {
	view := a.view()
	if view == nil {
		return warned
	}
	missing := map[string]bool{}
	var servers []gateway.ServerInfo
	for _, agent := range view.Fleet.Agents {
		if agent.Endpoint.Protocol != contract.ProtocolMCP {
			continue
		}
		if servers == nil {
			servers = a.host.Servers()
		}
		action := agent.Endpoint.Action
		found, similar := gateway.FindAction(servers, action)
		if found {
			continue
		}
		key := agent.ID + " " + action
		missing[key] = true
		if warned[key] {
			continue
		}
		attributes := []any{"agent", agent.ID, "action", action}
		if similar != "" {
			attributes = append(attributes, "did_you_mean", similar)
		}
		a.log.WarnContext(ctx, "no MCP server has the action of an agent, so that its tasks fail", attributes...)
	}
	return missing
}
