package golden

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

func TestBenchRegistry(t *testing.T) {
	b, err := newBenchRegistry([]labelledRow{
		{"a1", "greet", "Small Talk"}, {"b1", "pay", "bank"}, {"a2", "greet", "Small Talk"}, {"a3", "greet", "bank"}, {"o", "oos", "oos"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := b.snapshot
	if diff := cmp.Diff([]string{"greet", "pay"}, s.Intents); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Small Talk", "bank"}, s.Domains); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
	want := []*contract.RegistryEntry{
		{
			ID: "bank", Match: contract.Match{Intent: []string{"greet", "pay"}, Domains: []string{"bank"}},
			Examples: map[string][]string{"greet": {"a3"}, "pay": {"b1"}},
		},
		{
			ID: "small_talk", Match: contract.Match{Intent: []string{"greet"}, Domains: []string{"Small Talk"}},
			Examples: map[string][]string{"greet": {"a1", "a2"}},
		},
	}
	if diff := cmp.Diff(want, s.Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"greet": nil, "pay": {"bank"}}, b.domainsOf); diff != "" {
		t.Errorf("domains of intents (-want +got):\n%s", diff)
	}
	if id, ok := b.agents.lookup("Small Talk"); id != "small_talk" || !ok {
		t.Errorf("got agent %q, want small_talk", id)
	}
}

func TestLabelNames(t *testing.T) {
	n := newNameTable(labelName)
	tests := []struct{ label, want string }{
		{"visual-studio", "visual-studio"},
		{"PDF&URLTool", "PDF&URLTool"},
		{"*", "label"},
		{" ", "label_2"},
		{"Unknown", "Unknown_label"},
		{" a", "a"},
		{"a", "a_2"},
		{"a ", "a_3"},
		{"x\x00y", "x_y"},
		{strings.Repeat("é", 70), strings.Repeat("é", 64)},
		{strings.Repeat("é", 71), strings.Repeat("é", 62) + "_2"},
	}
	for _, tt := range tests {
		if got := n.assign(tt.label); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.label, got, tt.want)
		}
		if got := n.labelOf(tt.want); got != tt.label {
			t.Errorf("%q: got back %q, want %q", tt.want, got, tt.label)
		}
	}
	if _, ok := n.lookup("new"); ok {
		t.Error("got a name for an unknown label, want none")
	}
	if got := n.labelOf(contract.Unknown); got != contract.Unknown {
		t.Errorf("got %q for an unknown name, want it unchanged", got)
	}
}

// TestBenchRegistry_AnyLabels checks that any labels give a valid registry with distinct names.
func TestBenchRegistry_AnyLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.SliceOfNDistinct(rapid.String(), 1, 6, rapid.ID[string]).Draw(t, "labels")
		intents, domains, agents := newNameTable(labelName), newNameTable(labelName), newNameTable(agentName)
		var yaml strings.Builder
		yaml.WriteString("clients:\n")
		for _, label := range labels {
			intent, domain, id := intents.assign(label), domains.assign(label), agents.assign(label)
			if intents.labelOf(intent) != label || intents.assign(label) != intent {
				t.Fatalf("label %q, intent %q: got another label back", label, intent)
			}
			yaml.WriteString("  " + id + ":\n    match: { intent: [" + quoteYAML(intent) + "], domains: [" + quoteYAML(domain) + "] }\n")
		}
		if _, err := capabilities.Parse("labels.yaml", []byte(yaml.String())); err != nil {
			t.Fatalf("%v in:\n%s", err, yaml.String())
		}
	})
}

// quoteYAML quotes a printable text as a YAML scalar.
func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
