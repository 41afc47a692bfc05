package contract

import (
	"slices"
	"strings"
)

// The scopes a caller's token may hold. What an agent requires beyond them
// (requires.scopes) is the operator's to name.
const (
	ScopeRouteSubmit    = "route:submit"    // route, classify, cancel and erase what is one's own
	ScopeRouteRead      = "route:read"      // read requests and decisions that are one's own
	ScopeAgentsRead     = "agents:read"     // see the agents one may use, and check a registry
	ScopeAgentsRegister = "agents:register" // register the agent that the token speaks for
	ScopeTasksWork      = "tasks:work"      // deliver results of the agent that the token speaks for
	ScopeTickets        = "tickets"         // read and close tickets
	ScopeMCPRead        = "mcp:read"        // see plugins
	ScopeOrchestrate    = "orchestrate"     // run plans
	ScopeApprove        = "orchestrate:approve"

	ScopeInvokePrefix = "mcp:invoke:" // with PLUGIN.ACTION: call it
	ScopeAgentPrefix  = "agent:"      // with an agent's id: have it work
	ScopeAllAgents    = "agent:*"
)

// Scopes lists the scopes that are one word; those with a prefix are not among
// them.
func Scopes() []string {
	return []string{
		ScopeRouteSubmit, ScopeRouteRead, ScopeAgentsRead, ScopeAgentsRegister, ScopeTasksWork, ScopeTickets,
		ScopeAdmin, ScopeMCPRead, ScopeOrchestrate, ScopeApprove, ScopeAllAgents,
	}
}

// ValidScope reports whether the router itself knows the scope.
func ValidScope(scope string) bool {
	if slices.Contains(Scopes(), scope) {
		return true
	}
	if id, ok := strings.CutPrefix(scope, ScopeAgentPrefix); ok {
		return ValidAgentID(id)
	}
	if name, ok := strings.CutPrefix(scope, ScopeInvokePrefix); ok {
		plugin, action, _ := strings.Cut(name, ".")
		return plugin != "" && action != "" && !strings.ContainsFunc(name, notInName)
	}
	return false
}

// notInName is what no name of a plugin or action holds, and least of all what
// looks like "all of them".
func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
}
