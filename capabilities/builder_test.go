package capabilities

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

// A Builder that has built one definition builds the same snapshot of another as a new Builder
// does.
func TestBuilder_ReusedEntriesDoNotChangeSnapshot(t *testing.T) {
	entry := func(t *rapid.T, id string) *contract.RegistryEntry {
		return &contract.RegistryEntry{
			ID: id, Origin: rapid.SampledFrom([]contract.Origin{contract.OriginFile, contract.OriginRegistration}).Draw(t, "origin"),
			Match:    contract.Match{Intent: []string{rapid.SampledFrom([]string{"count", "pay"}).Draw(t, "intent")}, Domains: []string{"text"}},
			Endpoint: contract.Endpoint{Protocol: rapid.SampledFrom([]string{"", contract.ProtocolHTTP, "smoke"}).Draw(t, "protocol")},
			State:    rapid.SampledFrom([]contract.AgentState{contract.AgentActive, contract.AgentExpired}).Draw(t, "state"),
		}
	}
	ids := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		var b Builder
		entries, disabled := map[string]*contract.RegistryEntry{}, map[string]bool{}
		grants := map[string]contract.Grant{}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch id := rapid.SampledFrom(ids).Draw(t, "id"); rapid.IntRange(0, 4).Draw(t, "change") {
			case 0:
				delete(entries, id)
			case 1:
				disabled[id] = !disabled[id]
			case 2:
				grants = maps.Clone(grants)
				grants[id] = contract.Grant{Intents: []string{"count"}, Domains: []string{"text"}, Priority: step}
			default:
				entries[id] = entry(t, id)
			}
			d := &Definition{Agents: slices.Collect(maps.Values(entries)), Grants: grants, Disabled: disabled, Routing: DefaultRouting(), Fallback: DefaultFallback()}
			got, err := b.Build(d)
			if err != nil {
				t.Fatal(err)
			}
			want, err := NewSnapshot(d)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("step %d (-new +reused):\n%s", step, diff)
			}
		}
	})
}

// Entries that are equal in two definitions are split once.
func TestBuilder_ReusesEntries(t *testing.T) {
	var b Builder
	d := &Definition{Grants: map[string]contract.Grant{"agent1": {Intents: []string{"count"}}}}
	for i := range 3 {
		d.Agents = append(d.Agents, &contract.RegistryEntry{
			ID: fmt.Sprint("agent", i), Origin: contract.OriginRegistration, Match: contract.Match{Intent: []string{"count"}},
		})
	}
	first, err := b.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	changed := *d.Agents[1]
	d.Agents[1] = &changed
	second, err := b.Build(d)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true} {
		if got := first.Catalogue.Agents[i] == second.Catalogue.Agents[i]; got != want {
			t.Errorf("agent%d: reused %v, want %v", i, got, want)
		}
	}
	if first.Fleet.Revision != second.Fleet.Revision {
		t.Error("got another revision for an equal entry, want the same")
	}
}
