package teach

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

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
