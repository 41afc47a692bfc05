package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// ProbeActions connects to the MCP servers, which starts those that are processes, and reports
// the agents whose action no server has. It calls no tool.
func ProbeActions(ctx context.Context, cfg config.Config, opts app.Options) Finding {
	f := probeActions(ctx, cfg, opts)
	f.Check = "mcp actions"
	return f
}

func probeActions(ctx context.Context, cfg config.Config, opts app.Options) Finding {
	registry, _ := cfg.Registry.FilePath()
	snapshot, err := capabilities.Load(registry)
	if err != nil {
		return checkSkipped("there is no registry with agents")
	}
	actions, declared := map[string]string{}, map[string][]string{} // of agents, by id
	var ids []string
	for _, a := range snapshot.Fleet.Agents {
		if a.Endpoint.Protocol == contract.ProtocolMCP {
			actions[a.ID], declared[a.ID], ids = a.Endpoint.Action, a.MCPCapabilities, append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return checkSkipped("no agent is a tool of an MCP server")
	}
	path, _ := cfg.MCP.FilePath()
	file, err := mcpfile.Load(path)
	if err != nil {
		file = &mcpfile.File{} // the mistake is another check
	}
	guard, err := registrationGuard(&cfg)
	if err != nil {
		return checkFailed(err.Error(), "correct dispatch.allow_private")
	}
	registered, err := findRegistered(ctx, &cfg, opts.EnvLookup(), guard, file.Servers)
	if err != nil {
		return checkWarned(err.Error(), "caprouter agents list shows the state of agents while the router runs")
	}
	var unchecked []string
	if cfg.Store.URL != "" {
		ids = slices.DeleteFunc(ids, func(id string) bool {
			isOther := !hasOwner(snapshot.Fleet.Agent(id), file.Servers)
			if isOther {
				unchecked = append(unchecked, id)
			}
			return isOther
		})
	}
	switch {
	case len(ids) == 0:
		return checkSkipped(describeUnchecked(unchecked))
	case len(file.Servers)+len(registered) == 0:
		return checkSkipped("there are no MCP servers to connect to")
	}
	connections := gateway.Config{Lookup: opts.EnvLookup(), Guard: guard}
	connections.Client.Supervisor, connections.Client.Version = opts.Supervisor, opts.Version
	g, err := gateway.Start(ctx, file.Servers, connections)
	if err != nil {
		return checkFailed(err.Error(), "correct "+path)
	}
	var problems []string
	for i := range registered {
		r := &registered[i]
		if !slices.ContainsFunc(ids, func(id string) bool { return isOwner(r.Name, snapshot.Fleet.Agent(id)) }) {
			continue
		}
		if r.Problem == "" {
			if err := g.Register(r.Server); err != nil {
				r.Problem = err.Error()
			}
		}
		if r.Problem != "" {
			problems = append(problems, fmt.Sprintf("the registered server %q cannot be used: %s", r.Name, r.Problem))
		}
	}
	servers := connectServers(ctx, g, ids, actions)
	if err := g.Close(); err != nil {
		return checkWarned("the MCP servers cannot be ended: "+err.Error(), "end their processes")
	}
	for i := range servers {
		if s := &servers[i]; s.Error != "" && s.State != gateway.StateDisabled {
			problems = append(problems, fmt.Sprintf("server %q is not connected, so that its tools are not known: %s", s.Name, s.Error))
		}
	}
	for _, id := range ids {
		found, similar := gateway.FindAction(servers, actions[id])
		switch {
		case found && mayCall(servers, actions[id], declared[id]):
		case found:
			problems = append(problems, fmt.Sprintf("agent %s declares no capability that the server of its action %s provides", id, actions[id]))
		case similar != "":
			problems = append(problems, fmt.Sprintf("no server has the action %s of agent %s, did you mean %s?", actions[id], id, similar))
		default:
			problems = append(problems, fmt.Sprintf("no server has the action %s of agent %s", actions[id], id))
		}
	}
	if len(problems) > 0 {
		return checkWarned(strings.Join(problems, "; "), "caprouter mcp list shows the actions of all servers; --timeout gives them more time")
	}
	detail := fmt.Sprintf("the servers have the actions of %s", plaintext.CountNoun(len(ids), "agent"))
	if len(unchecked) > 0 {
		detail += "; " + describeUnchecked(unchecked)
	}
	return checkPassed(detail)
}

// registrationGuard returns the guard of the addresses of registered servers.
func registrationGuard(cfg *config.Config) (*egress.Guard, error) {
	private, err := cfg.Dispatch.PrivatePrefixes()
	if err != nil {
		return nil, err
	}
	return egress.NewGuard(append(private, cfg.LocalAddresses()...)...), nil
}

// findRegistered returns the servers that are registered over HTTP in the data directory, unless
// one of the file replaces them. Those of a shared store are not known.
func findRegistered(
	ctx context.Context, cfg *config.Config, lookup func(string) (string, bool), guard *egress.Guard, declared []mcpfile.Server,
) ([]mcphost.StoredServer, error) {
	if cfg.Store.URL != "" {
		return nil, nil
	}
	keys, err := cfg.Store.Encryption.OpenExistingKeys(cfg.DataDir, lookup)
	if err != nil {
		return nil, err
	}
	list, err := mcphost.StoredServers(ctx, cfg.DataDir, &mcphost.Config{Keys: keys, Guard: guard, AllowPlainHTTP: cfg.Dispatch.AllowPlainHTTP})
	return slices.DeleteFunc(list, func(r mcphost.StoredServer) bool {
		return slices.ContainsFunc(declared, func(s mcpfile.Server) bool { return s.ID == r.Name })
	}), err
}

// mayCall reports whether an agent with the mcp_capabilities, of which none permit every call,
// may call the action. An action that no server has listed may be called as far as is known.
func mayCall(servers []gateway.ServerInfo, action string, declared []string) bool {
	for i := range servers {
		isAction := func(t gateway.Tool) bool { return t.Action == action }
		if slices.ContainsFunc(servers[i].Tools, isAction) {
			return len(declared) == 0 || gateway.Permits(declared, servers[i].Capabilities)
		}
	}
	return true
}

// connectServers returns the state of the servers when each has been tried. Servers that are
// started lazily are started if an agent uses them.
func connectServers(ctx context.Context, g *gateway.Gateway, ids []string, actions map[string]string) []gateway.ServerInfo {
	g.WaitReady(ctx)
	for _, s := range g.Servers() {
		for _, id := range ids {
			if s.Status != gateway.StatusConnected && s.Error == "" && strings.HasPrefix(actions[id], s.Name+".") {
				g.WaitServer(ctx, s.Name)
			}
		}
	}
	return g.Servers()
}
