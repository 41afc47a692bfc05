package visibility_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/visibility"
)

func twoAgents() *capabilities.Catalogue {
	return &capabilities.Catalogue{
		Agents: []*contract.RegistryEntry{
			{ID: "counter", Match: contract.Match{Intent: []string{"count"}, Domains: []string{"words", "*"}}, Examples: map[string][]string{"count": {"how many words"}}},
			{ID: "payer", Match: contract.Match{Intent: []string{"pay", "count"}, Domains: []string{"bills"}}},
		},
		Intents: []string{"count", "pay"}, Domains: []string{"bills", "words"},
	}
}

func TestUsableAndVisibleAgents(t *testing.T) {
	for _, tt := range []struct {
		name            string
		caller          *contract.Caller
		usable, visible []string
	}{
		{"no caller", nil, nil, nil},
		{"no scope", &contract.Caller{}, nil, nil},
		{"one agent, twice", &contract.Caller{Scopes: []string{"agent:payer", "agent:payer", "agent:unknown", "other:counter", "agent:"}}, []string{"payer"}, []string{"payer"}},
		{"two agents, unsorted", &contract.Caller{Scopes: []string{"agent:payer", "agent:counter"}}, []string{"counter", "payer"}, []string{"counter", "payer"}},
		{"every agent", &contract.Caller{AllAgents: true}, []string{"counter", "payer"}, []string{"counter", "payer"}},
		{"every scope", &contract.Caller{AllScopes: true}, []string{"counter", "payer"}, []string{"counter", "payer"}},
		{"administrator", &contract.Caller{Scopes: []string{"admin"}}, nil, []string{"counter", "payer"}},
	} {
		for _, got := range []struct {
			kind   string
			agents visibility.Agents
			want   []string
		}{{"usable", visibility.Usable(twoAgents(), tt.caller), tt.usable}, {"visible", visibility.Visible(twoAgents(), tt.caller), tt.visible}} {
			var ids []string
			for _, a := range got.agents.List() {
				ids = append(ids, a.ID)
			}
			if diff := cmp.Diff(got.want, ids); diff != "" {
				t.Errorf("%s: %s agents (-want +got):\n%s", tt.name, got.kind, diff)
			}
		}
	}
}

func TestAgents_Labels(t *testing.T) {
	counter := visibility.Usable(twoAgents(), &contract.Caller{Scopes: []string{"agent:counter"}})
	all := visibility.Usable(twoAgents(), &contract.Caller{AllAgents: true})
	if diff := cmp.Diff([]string{"count"}, counter.Intents()); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"words"}, counter.Domains()); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"All", counter.All(), false},
		{"All of every agent", all.All(), true},
		{"Has counter", counter.Has("counter"), true},
		{"Has payer", counter.Has("payer"), false},
		{"HasIntent count", counter.HasIntent("count"), true},
		{"HasIntent pay", counter.HasIntent("pay"), false},
		{"HasDomain words", counter.HasDomain("words"), true},
		{"HasDomain bills", counter.HasDomain("bills"), false},
		{"HasDomain *", counter.HasDomain("*"), false},
		{"HasExample", counter.HasExample("how many words"), true},
		{"HasExample of another", counter.HasExample("pay it"), false},
		{"HasExampleOf count", counter.HasExampleOf("count", "how many words"), true},
		{"HasExampleOf pay", counter.HasExampleOf("pay", "how many words"), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, tt.got, tt.want)
		}
	}
	counts := visibility.CountVisible(map[string]int{"count": 3, "pay": 4, "sing": 2}, counter.HasIntent, 5)
	if diff := cmp.Diff(map[string]int{"count": 3, "unknown": 5}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}
