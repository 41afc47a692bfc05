package teach

import (
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// A case has a tenant that its agents serve, if possible that of the caller.
func TestTenantOfCase(t *testing.T) {
	snapshot := func(text string) *capabilities.Snapshot {
		s, err := capabilities.Parse("capabilities.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	of := snapshot(`clients:
  both: { match: { intent: [a] }, requires: { tenants: [acme, umbrella] } }
  one: { match: { intent: [b] }, requires: { tenants: [umbrella] } }
  third: { match: { intent: [c] }, requires: { tenants: [initech] } }
  all: { match: { intent: [d] } }
`)
	for _, tt := range []struct {
		name     string
		registry *capabilities.Snapshot
		agents   []string
		caller   string
		want     string
	}{
		{"first of the agent", of, []string{"both"}, "", "acme"},
		{"that of the caller", of, []string{"both"}, "umbrella", "umbrella"},
		{"caller who is not served", of, []string{"one"}, "acme", "umbrella"},
		{"common to all agents", of, []string{"both", "one", "all"}, "", "umbrella"},
		{"none in common", of, []string{"both", "third"}, "", ""},
		{"agent without a limit", of, []string{"all"}, "", ""},
		{"agent without a limit, caller with a tenant", of, []string{"all"}, "acme", "acme"},
		{"no agent", of, nil, "acme", "acme"},
		{"registry without limits", snapshot("clients:\n  all: { match: { intent: [d] } }\n"), []string{"all"}, "acme", ""},
	} {
		if got := TenantOfCase(tt.registry, tt.agents, tt.caller); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLacksAccess(t *testing.T) {
	excluded := func(gates ...string) []contract.Candidate {
		c := contract.Candidate{AgentID: "a"}
		for _, g := range gates {
			c.Gates = append(c.Gates, contract.Gate{Gate: g})
		}
		return []contract.Candidate{c}
	}
	tests := []struct {
		name     string
		decision *contract.Decision
		want     bool
	}{
		{"entitlement", &contract.Decision{Hidden: excluded("entitlement")}, true},
		{"scope", &contract.Decision{Candidates: excluded("scopes")}, true},
		{"scope and tenant, beside a near miss", &contract.Decision{Candidates: append(excluded("threshold"), excluded("scopes", "tenant")...)}, true},
		{"unsure as well", &contract.Decision{Hidden: excluded("entitlement", "confidence")}, false},
		{"score", &contract.Decision{Candidates: excluded("scopes", "threshold")}, false},
		{"data class", &contract.Decision{Candidates: excluded("data_classes")}, false},
		{"one part has an agent", &contract.Decision{Candidates: excluded("scopes"), Chosen: []string{"b"}}, false},
		{"no candidate", &contract.Decision{}, false},
		{"eligible, beyond top_k", &contract.Decision{Candidates: excluded()}, false},
		{"not shown", nil, false},
	}
	for _, tt := range tests {
		if got := LacksAccess(tt.decision); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
