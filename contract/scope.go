package contract

import (
	"slices"
	"strings"
)

// Scopes of a caller's token. Agents may require other scopes
// (requires.scopes), which the operator defines.
const (
	ScopeRouteSubmit    = "route:submit"    // route, classify, cancel and erase own requests
	ScopeRouteRead      = "route:read"      // read own requests and decisions
	ScopeAgentsRead     = "agents:read"     // list usable agents, and validate a registry
	ScopeAgentsRegister = "agents:register" // register the agent of the token
	ScopeTasksWork      = "tasks:work"      // pull tasks of the agent of the token, and deliver results
	ScopeTickets        = "tickets"         // read and close tickets
	ScopeMCPRead        = "mcp:read"        // list MCP servers and tools, and check registry files
	ScopeOrchestrate    = "orchestrate"     // run plans
	ScopeApprove        = "orchestrate:approve"

	ScopeInvokePrefix = "mcp:invoke:" // with SERVER.TOOL: call a tool of an MCP server
	ScopeAgentPrefix  = "agent:"      // with an agent id: use the agent
	ScopeAllAgents    = "agent:*"
)

// Scopes lists the scopes without parameters.
func Scopes() []string {
	return []string{
		ScopeRouteSubmit, ScopeRouteRead, ScopeAgentsRead, ScopeAgentsRegister, ScopeTasksWork, ScopeTickets,
		ScopeAdmin, ScopeMCPRead, ScopeOrchestrate, ScopeApprove, ScopeAllAgents,
	}
}

// ValidScope reports whether the router defines the scope.
func ValidScope(scope string) bool {
	if slices.Contains(Scopes(), scope) {
		return true
	}
	if id, ok := strings.CutPrefix(scope, ScopeAgentPrefix); ok {
		return ValidAgentID(id)
	}
	if name, ok := strings.CutPrefix(scope, ScopeInvokePrefix); ok {
		parts := strings.Split(name, ".")
		return len(parts) > 1 && !strings.ContainsFunc(name, notInName) && !slices.ContainsFunc(parts, isPunctuation)
	}
	return false
}

// isPunctuation reports whether a part of a name has no letter and no digit, as between two
// dots.
func isPunctuation(part string) bool { return strings.Trim(part, "_-/") == "" }

// notInName reports whether r is invalid in the name of a plugin or action.
// This excludes wildcards.
func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
}
