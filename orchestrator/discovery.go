package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// listServers returns the servers that the goal permits.
func (x *execution) listServers(ctx context.Context) ([]Server, error) {
	all, err := x.o.cfg.Registry.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the MCP servers: %w", err)
	}
	wanted := x.rec.Goal.AvailableServers
	return slices.DeleteFunc(all, func(s Server) bool { return len(wanted) > 0 && !slices.Contains(wanted, s.Name) }), nil
}

func (x *execution) discover(ctx context.Context) error {
	servers, err := x.listServers(ctx)
	if err != nil {
		return x.abort(ctx, err)
	}
	if len(servers) == 0 {
		return x.failWithoutServer(ctx)
	}
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	return x.advance(EventServersListed, contract.RunEvent{Detail: strings.Join(names, ", ")}, nil)
}

// failWithoutServer ends the run because no server is connected, or none of those that the
// goal names.
func (x *execution) failWithoutServer(ctx context.Context) error {
	e := contract.RunError{
		Reason: contract.ReasonNoServers, Message: "no MCP server is available",
		Suggestion: "declare servers in the registry file of MCP servers, and check their status: caprouter mcp list",
	}
	all, err := x.o.cfg.Registry.ListServers(ctx)
	if err != nil {
		return x.abort(ctx, fmt.Errorf("list the MCP servers: %w", err))
	}
	if wanted := x.rec.Goal.AvailableServers; len(wanted) > 0 && len(all) > 0 {
		var names, connected []string
		for _, s := range all {
			if names = append(names, s.Name); !s.NeedsAuth {
				connected = append(connected, s.Name)
			}
		}
		e.Message = "no server of available_servers is connected: " + strings.Join(wanted, ", ")
		if len(connected) > 0 {
			e.Suggestion = "connected are " + strings.Join(connected, ", ")
		}
		if near := strictyaml.Nearest(wanted[0], names); near != "" {
			e.Suggestion = "did you mean " + near + "?"
		}
	}
	return x.fail(EventNoServers, e)
}

func (x *execution) authorize(ctx context.Context) error {
	servers, err := x.loadTools(ctx)
	if err != nil {
		return x.abort(ctx, err)
	}
	if len(x.tools.list) == 0 && servers > 0 {
		return x.fail(EventAuthFailed, contract.RunError{
			Reason: contract.ReasonNotAuthorized, Message: "none of the tools may be called",
			Suggestion: fmt.Sprintf("the token needs a scope that begins with %s, and the servers need their credentials", contract.ScopeInvokePrefix),
		})
	}
	return x.advance(EventAuthOK, contract.RunEvent{}, nil)
}

// toolSet are the tools that a run may call, and the servers that its goal permits. It is
// immutable.
type toolSet struct {
	list    []*Tool           // ordered by action
	servers map[string]Server // by name
}

// tool returns the definition of an action, nil if there is none.
func (s *toolSet) tool(action string) *Tool {
	i, ok := slices.BinarySearchFunc(s.list, action, func(t *Tool, action string) int { return strings.Compare(t.Action(), action) })
	if !ok {
		return nil
	}
	return s.list[i]
}

// countCallable returns the number of tools without an error by server.
func (s *toolSet) countCallable() map[string]int {
	count := map[string]int{}
	for _, t := range s.list {
		if t.Error == "" {
			count[t.Server]++
		}
	}
	return count
}

// loadTools loads the tools that may be called. servers is the number of servers that have
// tools.
func (x *execution) loadTools(ctx context.Context) (servers int, err error) {
	list, err := x.listServers(ctx)
	if err != nil {
		return 0, err
	}
	set := &toolSet{servers: map[string]Server{}}
	for i := range list {
		s := &list[i]
		set.servers[s.Name] = *s
		names, err := x.o.cfg.Registry.ListTools(ctx, s.Name)
		if errors.Is(err, ErrNotFound) {
			continue
		} else if err != nil {
			return 0, fmt.Errorf("list the tools of %s: %w", s.Name, err)
		}
		if len(names) > 0 {
			servers++
		}
		if s.NeedsAuth {
			continue
		}
		if set.list, err = x.appendTools(ctx, set.list, s.Name, names); err != nil {
			return 0, err
		}
	}
	slices.SortFunc(set.list, func(a, b *Tool) int { return strings.Compare(a.Action(), b.Action()) })
	x.tools = set
	return servers, nil
}

// appendTools appends the tools of a server that may be called.
func (x *execution) appendTools(ctx context.Context, tools []*Tool, server string, names []string) ([]*Tool, error) {
	for _, name := range names {
		if !x.rec.mayCall(server + "." + name) {
			continue
		}
		t, err := x.o.cfg.Registry.GetToolSchema(ctx, server, name)
		if errors.Is(err, ErrNotFound) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read the definition of %s.%s: %w", server, name, err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// ensureTools loads the tools after the run was taken over.
func (x *execution) ensureTools(ctx context.Context) error {
	if x.tools != nil {
		return nil
	}
	_, err := x.loadTools(ctx)
	return err
}

func (x *execution) describe(ctx context.Context) error {
	if err := x.ensureTools(ctx); err != nil {
		return x.abort(ctx, err)
	}
	count := x.tools.countCallable()
	if len(count) == 0 {
		return x.fail(EventNoTools, contract.RunError{Reason: contract.ReasonNoTools, Message: "the MCP servers have no tool that can be called"})
	}
	return x.advance(EventSchemaLoaded, contract.RunEvent{}, func(r *Record) {
		r.Servers = nil
		for name, n := range count {
			r.Servers = append(r.Servers, contract.ServerUse{Name: name, Transport: x.tools.servers[name].Transport, Tools: n})
		}
		slices.SortFunc(r.Servers, func(a, b contract.ServerUse) int { return strings.Compare(a.Name, b.Name) })
	})
}
