package contract_test

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestValidScope(t *testing.T) {
	for _, scope := range append(contract.Scopes(), "agent:quality_agent", "mcp:invoke:github.create_issue") {
		if !contract.ValidScope(scope) {
			t.Errorf("ValidScope(%q): got false, want true", scope)
		}
	}
	for _, scope := range []string{
		"", "route", "route:", "route:submit ", "Route:Submit", "route:submit route:read", "admin:", "task:execute",
		"agent:", "agent:**", "agent:Quality", "agent:a b", "agents:*", "mcp:invoke", "mcp:invoke:", "mcp:invoke:*",
		"mcp:invoke:github", "mcp:invoke:github.", "mcp:invoke:.create", "mcp:invoke:github.*", "mcp:invoke:a.b c",
	} {
		if contract.ValidScope(scope) {
			t.Errorf("ValidScope(%q): got true, want false", scope)
		}
	}
}
