package prompts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/prompts"
)

// registrySummary returns the registry summary of a rendered prompt.
func registrySummary(t *testing.T, agents []prompts.Agent) string {
	t.Helper()
	user := (&prompts.RouterData{Agents: agents, Prompt: "p"}).Render().User
	_, rest, ok := strings.Cut(user, "CONTEXT\n")
	text, _, found := strings.Cut(rest, "\n\nUSER_REQUEST\n")
	if !ok || !found {
		t.Fatalf("got no summary in:\n%s", user)
	}
	return text
}

// TestSummary_AgentText checks that descriptions are cleaned, truncated and
// limited in number.
func TestSummary_AgentText(t *testing.T) {
	long := strings.Repeat("é", 500)
	got := parse(t, registrySummary(t, []prompts.Agent{{
		ID: "a", Intents: []string{"i"}, Domains: []string{"d"},
		Description: " one\u200b\n\ntwo\t" + long,
		Examples:    []string{"\u200b", "e1", "e2 " + long, "e3", "e4"},
		NotFor:      []string{"n1\x00", "n2", "n3"},
	}}))
	want := []string{
		"a", "i", "d",
		"one two " + long[:2*(prompts.MaxDescription-8)] + prompts.CutMark,
		"e1", "e2 " + long[:2*(prompts.MaxUtterance-3)] + prompts.CutMark, "e3",
		"n1", "n2",
	}
	if diff := cmp.Diff(want, got.values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// TestSummary_IsBounded checks that the summary is bounded, and omits the least useful parts first.
func TestSummary_IsBounded(t *testing.T) {
	agents := func(n, names, text int) []prompts.Agent {
		list := make([]prompts.Agent, n)
		for i := range list {
			a := &list[i]
			a.ID = fmt.Sprintf("agent_%04d", i)
			for k := range names {
				a.Intents = append(a.Intents, fmt.Sprintf("intent_%d_%d", i, k))
				a.Domains = append(a.Domains, fmt.Sprintf("domain_%d_%d", i, k))
			}
			words := strings.Repeat("w", text)
			a.Description, a.Examples, a.NotFor = "d"+words, []string{"e" + words}, []string{"n" + words}
		}
		return list
	}
	tests := []struct {
		name   string
		agents []prompts.Agent
		has    []string
		hasNot []string
	}{
		{"small", agents(20, 3, 50), []string{"  examples: ", "  description: ", "  not for: ", `"agent_0019"`}, []string{" more"}},
		{"examples omitted first", agents(70, 3, 119), []string{"  description: ", "  not for: ", `"agent_0069"`}, []string{"  examples: ", " more"}},
		{"then descriptions", agents(100, 3, 119), []string{"  not for: ", `"agent_0099"`}, []string{"  examples: ", "  description: ", " more"}},
		{"then all texts", agents(200, 3, 119), []string{`"agent_0199"`}, []string{"  examples: ", "  description: ", "  not for: ", " more"}},
		{"then names", agents(20, 100, 10), []string{`"agent_0019"`, ", and 84 more};"}, []string{"more agents"}},
		{"then more names", agents(100, 100, 10), []string{`"agent_0099"`, ", and 96 more};"}, []string{"more agents"}},
		{"then agents", agents(5000, 5, 10), []string{`"agent_0000"`, " more agents, not shown"}, []string{`"agent_4999"`}},
		{"one agent with many labels", agents(1, 3000, 2000), []string{", and 2984 more};"}, []string{"more agents"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := registrySummary(t, tt.agents)
			if len(got) > prompts.MaxSummary {
				t.Errorf("got %d bytes, want at most %d", len(got), prompts.MaxSummary)
			}
			for _, s := range tt.has {
				if !strings.Contains(got, s) {
					t.Errorf("got no %q in the summary (%d bytes)", s, len(got))
				}
			}
			for _, s := range tt.hasNot {
				if strings.Contains(got, s) {
					t.Errorf("got %q in the summary (%d bytes), want none", s, len(got))
				}
			}
			parse(t, got) // every value is closed
		})
	}
}

// TestRender_IsPure checks that rendering is deterministic and does not modify
// its input.
func TestRender_IsPure(t *testing.T) {
	r := &prompts.RouterData{Agents: describedAgents(), Prompt: "p", History: conversation()}
	first := r.Render()
	if diff := cmp.Diff(describedAgents(), r.Agents); diff != "" {
		t.Errorf("got the agents modified (-want +got):\n%s", diff)
	}
	if !slices.Equal(conversation(), r.History) {
		t.Errorf("got history %v, want it unchanged", r.History)
	}
	if again := r.Render(); again != first {
		t.Errorf("got another text from the second rendering (-first +second):\n%s", cmp.Diff(first, again))
	}
}

func BenchmarkRender(b *testing.B) {
	r := &prompts.RouterData{Agents: sourceAgents(), Prompt: strings.Repeat("review this code, please; ", 20), History: conversation()}
	for b.Loop() {
		r.Render()
	}
}
