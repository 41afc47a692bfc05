package app

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// ToolError is a tool that an agent may not call, so that no token permits it.
type ToolError struct{ Reason string }

func (e *ToolError) Error() string { return e.Reason }

// checkTools rejects tools that the agent may not call, if the token is for an agent: those
// of servers that provide none of its mcp_capabilities.
func (t *tokenAgents) checkTools(g TokenGrant, cfg *config.MCP) error {
	if !slices.ContainsFunc(g.Scopes, isAgentScope) {
		return nil
	}
	for _, s := range g.Scopes {
		action, ok := strings.CutPrefix(s, contract.ScopeInvokePrefix)
		if !ok {
			continue
		}
		agents, err := t.load()
		if err != nil {
			return err
		}
		reason, err := explainForbiddenTool(g.Subject, agents[g.Subject], action, cfg)
		if err != nil {
			return fmt.Errorf("the tool %s cannot be checked: %w", action, err)
		}
		if reason != "" {
			return &ToolError{Reason: reason}
		}
	}
	return nil
}

// explainForbiddenTool returns why the agent may not call the tool, "" if it may.
func explainForbiddenTool(id string, agent tokenAgent, action string, cfg *config.MCP) (string, error) {
	switch {
	case !agent.declared:
		return id + " may call no tool: agents that register themselves declare no mcp_capabilities; declare the agent under clients", nil
	case len(agent.mcpCapabilities) == 0:
		return id + " may call no tool: it declares no mcp_capabilities", nil
	}
	path, optional := cfg.FilePath()
	file, err := mcpfile.Load(path)
	if optional && errors.Is(err, fs.ErrNotExist) {
		file, err = &mcpfile.File{}, nil
	}
	if err != nil {
		return "", err
	}
	// Names of servers may contain dots, so that several may be the one of the action.
	var owner, without *mcpfile.Server
	for i := range file.Servers {
		s := &file.Servers[i]
		tool, ok := strings.CutPrefix(action, s.ID+".")
		switch {
		case !ok || tool == "":
		case !gateway.MayHaveTool(s, tool):
			without = s
		case gateway.Permits(agent.mcpCapabilities, s.Capabilities):
			return "", nil
		default:
			owner = s
		}
	}
	switch {
	case owner == nil && without == nil:
		return explainUnknownServer(action, path, file.Servers), nil
	case owner == nil:
		return explainUnknownTool(without, strings.TrimPrefix(action, without.ID+"."), path), nil
	}
	provided := "no capability"
	if len(owner.Capabilities) > 0 {
		provided = strings.Join(owner.Capabilities, ", ")
	}
	return fmt.Sprintf("%s may not call %s: it declares %s, and the server %s provides %s", id, action, strings.Join(agent.mcpCapabilities, ", "), owner.ID, provided), nil
}

// explainUnknownServer returns the error for an action that no server of the file can have.
func explainUnknownServer(action, path string, servers []mcpfile.Server) string {
	reason := fmt.Sprintf("no server of %s has the action %s", path, action)
	var ids []string
	for i := range servers {
		ids = append(ids, servers[i].ID)
	}
	for at := range len(action) - 1 { // names of servers may contain dots
		if action[at] != '.' {
			continue
		}
		if near := strictyaml.Nearest(action[:at], ids); near != "" {
			return reason + ", did you mean " + near + action[at:] + "?"
		}
	}
	return reason + "; name the registry of MCP servers with --mcp"
}

// explainUnknownTool returns the error for a tool that the declaration of its server excludes.
func explainUnknownTool(server *mcpfile.Server, tool, path string) string {
	reason := fmt.Sprintf("the server %s has no tool %s", server.ID, tool)
	var declared []string
	for i := range server.Actions {
		declared = append(declared, server.Actions[i].Name)
	}
	if slices.Contains(declared, tool) || len(declared) == 0 && server.Transport != mcpfile.REST {
		return reason + ": " + path + " selects others (tools.include, tools.exclude)"
	}
	if near := strictyaml.Nearest(tool, declared); near != "" {
		return reason + ", did you mean " + server.ID + "." + near + "?"
	}
	return reason + ": " + path + " declares " + joinNames(declared)
}

// maxJoined is how many names an error contains.
const maxJoined = 10

func joinNames(names []string) string {
	if len(names) > maxJoined {
		names = append(slices.Clone(names[:maxJoined]), "…")
	}
	return strings.Join(names, ", ")
}
