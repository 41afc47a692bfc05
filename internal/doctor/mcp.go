package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// checkMCP loads the registry file of MCP servers as serve does, and reports what keeps
// tools from being called. It starts and connects to no server.
func (d *diagnosis) checkMCP(ctx context.Context) Finding {
	path, optional := d.MCP.FilePath()
	file, err := mcpfile.Load(path)
	absent := optional && errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return checkFailed(err.Error(), "correct mcp.file, or the file; caprouter mcp validate --mcp "+path+" shows every mistake")
	}
	if absent {
		file = &mcpfile.File{}
	}
	var problems []string
	for i := range file.Servers {
		s := &file.Servers[i]
		if problem := checkServer(s, d.opts.EnvLookup()); problem != "" && !s.Disabled {
			problems = append(problems, problem)
		}
	}
	detail := path + ": " + plaintext.CountNoun(len(file.Servers), "server")
	if absent {
		detail = "there is no " + path
	}
	unmet, unchecked := d.findUnmetAgents(ctx, path, file.Servers)
	problems = append(problems, unmet...)
	if len(unchecked) > 0 {
		detail += "; " + describeUnchecked(unchecked)
	}
	switch {
	case len(problems) > 0:
		return checkWarned(detail+"; "+strings.Join(problems, "; "), "correct the file, the registry or the environment; caprouter mcp test connects to each server")
	case absent:
		return checkSkipped(detail)
	}
	return checkPassed(detail)
}

// checkServer returns why a server cannot work, "" if nothing is known.
func checkServer(s *mcpfile.Server, lookup func(string) (string, bool)) string {
	e, err := s.Expand(lookup)
	if err != nil {
		return fmt.Sprintf("server %q is blocked: %v", s.ID, err)
	}
	if len(e.Command) == 0 {
		return ""
	}
	program := e.Command[0]
	switch {
	case filepath.Base(program) == program: // looked up in the PATH of the server
		if e.Env["PATH"] != "" {
			return ""
		}
	case !filepath.IsAbs(program): // relative to the directory of the server
		if program, err = filepath.Abs(filepath.Join(e.Dir, program)); err != nil {
			return ""
		}
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Sprintf("the command %q of server %q is not found", s.Command[0], s.ID)
	}
	return ""
}

// findUnmetAgents describes the agents whose tools or capabilities are of no server, and
// returns the ids of those whose server may be registered in another store. A registry that
// cannot be loaded is another check.
func (d *diagnosis) findUnmetAgents(ctx context.Context, path string, servers []mcpfile.Server) (problems, unchecked []string) {
	registry, _ := d.Registry.FilePath()
	snapshot, err := capabilities.Load(registry)
	if err != nil {
		return nil, nil
	}
	var provided []string
	for i := range servers {
		if !servers[i].Disabled {
			provided = append(provided, servers[i].Capabilities...)
		}
	}
	known, err := addRegistered(ctx, &d.Config, snapshot, servers)
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, a := range snapshot.Fleet.Agents {
		for _, c := range a.MCPCapabilities {
			if !gateway.Permits([]string{c}, provided) {
				problems = append(problems, fmt.Sprintf("no server in %s provides the capability %s of agent %s", path, c, a.ID))
			}
		}
		switch {
		case a.Endpoint.Protocol != contract.ProtocolMCP:
		case !hasOwner(a, known) && d.Store.URL != "":
			unchecked = append(unchecked, a.ID)
		case !hasOwner(a, known):
			problems = append(problems, fmt.Sprintf("the action %s of agent %s is of no server in %s, and of no registered one", a.Endpoint.Action, a.ID, path))
		case !isPermitted(a, known):
			problems = append(problems, fmt.Sprintf("agent %s declares no capability that the server of its action %s provides", a.ID, a.Endpoint.Action))
		}
	}
	return problems, unchecked
}

// describeUnchecked names the agents whose servers cannot be looked at.
func describeUnchecked(ids []string) string {
	return fmt.Sprintf("not checked, because only a running router knows the servers that are registered over HTTP: %s", strings.Join(ids, ", "))
}

// addRegistered returns the servers and, with their names only, those that are registered over
// HTTP in the data directory, if an agent is a tool of no other. They provide no capability.
func addRegistered(ctx context.Context, cfg *config.Config, snapshot *capabilities.Snapshot, servers []mcpfile.Server) ([]mcpfile.Server, error) {
	isKnown := func(a *contract.RegistryEntry) bool {
		return a.Endpoint.Protocol != contract.ProtocolMCP || hasOwner(a, servers)
	}
	if cfg.Store.URL != "" || !slices.ContainsFunc(snapshot.Fleet.Agents, func(a *contract.RegistryEntry) bool { return !isKnown(a) }) {
		return servers, nil
	}
	names, err := mcphost.StoredNames(ctx, cfg.DataDir)
	if err != nil {
		return servers, err
	}
	known := slices.Clone(servers)
	for _, name := range names {
		if !slices.ContainsFunc(servers, func(s mcpfile.Server) bool { return s.ID == name }) {
			known = append(known, mcpfile.Server{ID: name})
		}
	}
	return known, nil
}

// hasOwner reports whether the action of the agent, which is a tool, may be of one of the
// servers. Names of servers may contain dots, so that several may be the one of the action.
func hasOwner(a *contract.RegistryEntry, servers []mcpfile.Server) bool {
	return slices.ContainsFunc(servers, func(s mcpfile.Server) bool { return isOwner(s.ID, a) })
}

// isPermitted reports whether a server that may be the one of the action provides a capability
// of the agent, if the agent declares any.
func isPermitted(a *contract.RegistryEntry, servers []mcpfile.Server) bool {
	return slices.ContainsFunc(servers, func(s mcpfile.Server) bool {
		return isOwner(s.ID, a) && (len(a.MCPCapabilities) == 0 || gateway.Permits(a.MCPCapabilities, s.Capabilities))
	})
}

func isOwner(server string, a *contract.RegistryEntry) bool {
	return strings.HasPrefix(a.Endpoint.Action, server+".")
}
