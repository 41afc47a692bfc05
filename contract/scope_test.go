package contract_test

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestValidScope(t *testing.T) {
	for _, scope := range append(contract.Scopes(), "agent:quality_agent", "mcp:invoke:github.create_issue", "mcp:invoke:a.b.c/_d") {
		if !contract.ValidScope(scope) {
			t.Errorf("ValidScope(%q): got false, want true", scope)
		}
	}
	for _, scope := range []string{
		"", "route", "route:", "route:submit ", "Route:Submit", "route:submit route:read", "admin:", "task:execute",
		"agent:", "agent:**", "agent:Quality", "agent:a b", "agents:*", "mcp:invoke", "mcp:invoke:", "mcp:invoke:*",
		"mcp:invoke:github", "mcp:invoke:github.", "mcp:invoke:.create", "mcp:invoke:github.*", "mcp:invoke:a.b c",
		"mcp:invoke:files..read", "mcp:invoke:files.read.", "mcp:invoke:files.-", "mcp:invoke:files./", "mcp:invoke:_.read",
	} {
		if contract.ValidScope(scope) {
			t.Errorf("ValidScope(%q): got true, want false", scope)
		}
	}
}
