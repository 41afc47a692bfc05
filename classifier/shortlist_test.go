package classifier_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// listedAgents returns the ids of the agents in a request, in order.
func listedAgents(req *llm.Request) []string {
	var ids []string
	for line := range strings.Lines(req.User) {
		if rest, ok := strings.CutPrefix(line, `- "`); ok {
			id, _, _ := strings.Cut(rest, `"`)
			if contract.ValidAgentID(id) && id != "user" && id != "assistant" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// modelRequest returns the model request for the input.
func modelRequest(t *testing.T, cfg classifier.Config, in classifier.Input) *llm.Request {
	t.Helper()
	m := &fakeModel{do: replyTexts("")}
	cfg.Model = m
	open(t, cfg).Classify(t.Context(), in)
	asked := m.received()
	if len(asked) != 1 {
		t.Fatalf("got %d calls, want 1", len(asked))
	}
	return &asked[0]
}

// similarAgents returns a registry of n similar agents and five different ones.
func similarAgents(n int) *capabilities.Catalogue {
	agents := sourceRegistry().Agents
	agents = append(agents,
		&contract.RegistryEntry{ID: "azure_agent", Match: contract.Match{Intent: []string{"deploy_service"}, Domains: []string{"azure", "docs"}}},
		&contract.RegistryEntry{ID: "poet_agent", Match: contract.Match{Intent: []string{"poem"}, Domains: []string{"*"}}, Examples: map[string][]string{
			"poem": {"write some verses about the autumn sea"},
		}},
	)
	for i := range n {
		agents = append(agents, &contract.RegistryEntry{
			ID:    fmt.Sprintf("clerk_%03d", i),
			Match: contract.Match{Intent: []string{fmt.Sprintf("file%03d", i)}, Domains: []string{"paper"}},
		})
	}
	slices.SortFunc(agents, func(a, b *contract.RegistryEntry) int { return strings.Compare(a.ID, b.ID) })
	return snapshot(agents...)
}

func TestShortlist(t *testing.T) {
	three := classifier.Config{ShortlistAbove: 10, ShortlistK: 3}
	user := func(texts ...string) []contract.Turn {
		var turns []contract.Turn
		for _, text := range texts {
			turns = append(turns, contract.Turn{Role: "user", Content: text})
		}
		return turns
	}
	tests := []struct {
		name    string
		cfg     classifier.Config
		clerks  int
		prompt  string
		history []contract.Turn
		want    string
	}{
		{"at most the limit", three, 5, "review", nil, "azure_agent billing_agent clerk_000 clerk_001 clerk_002 clerk_003 clerk_004 poet_agent quality_agent rag_agent"},
		{"intents", three, 6, "a code review, a cost analysis and a poem", nil, "billing_agent poet_agent quality_agent"},
		{"intent before half an intent", classifier.Config{ShortlistAbove: 10, ShortlistK: 3}, 6, "deploy service, then a cost thing on databricks", nil, "azure_agent billing_agent quality_agent"},
		{"domains only", three, 6, "something with docs", nil, "azure_agent billing_agent rag_agent"},
		{"two domains before one", classifier.Config{ShortlistAbove: 10, ShortlistK: 1}, 6, "azure, python or semaforo", nil, "quality_agent"},
		{"word of an example", three, 6, "verses, please", nil, "azure_agent billing_agent poet_agent"},
		{"no known word", three, 6, "tell me a joke", nil, "azure_agent billing_agent clerk_000"},
		{"empty prompt", three, 6, "", nil, "azure_agent billing_agent clerk_000"},
		{"history after the prompt", three, 6, "and a poem?", user("review my code", "file003 it"), "clerk_003 poet_agent quality_agent"},
		{"latest turn first", classifier.Config{ShortlistAbove: 10, ShortlistK: 2}, 6, "and a poem?", user("review my code", "file003 it"), "clerk_003 poet_agent"},
		{"prompt before history", classifier.Config{ShortlistAbove: 10, ShortlistK: 1}, 6, "a poem?", user("review my code"), "poet_agent"},
		{"limit above the number of agents", classifier.Config{ShortlistAbove: 10, ShortlistK: 100}, 6, "poem", nil, "azure_agent billing_agent clerk_000 clerk_001 clerk_002 clerk_003 clerk_004 clerk_005 poet_agent quality_agent rag_agent"},
		{"placeholders", three, 6, "[POEM_1] [FILE_3]", nil, "azure_agent billing_agent clerk_000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(similarAgents(tt.clerks), tt.prompt)
			in.History = tt.history
			if diff := cmp.Diff(tt.want, strings.Join(listedAgents(modelRequest(t, tt.cfg, in)), " ")); diff != "" {
				t.Errorf("agents shown (-want +got):\n%s", diff)
			}
		})
	}
}

// TestShortlist_Defaults checks that all of 20 agents are listed, and 10 of 21.
func TestShortlist_Defaults(t *testing.T) {
	for agents, want := range map[int]int{1: 1, 20: 20, 21: 10, 500: 10} {
		req := modelRequest(t, classifier.Config{}, input(manyAgents(agents), "common work"))
		if got := len(listedAgents(req)); got != want {
			t.Errorf("%d agents: got %d listed, want %d", agents, got, want)
		}
	}
}

// TestShortlist_Schema checks that the schema contains the labels of the shortlist, while a reply
// may use all declared labels.
func TestShortlist_Schema(t *testing.T) {
	s := manyAgents(30)
	in := input(s, "do aaa in domaaa")
	req := modelRequest(t, classifier.Config{ShortlistK: 1}, in)
	if diff := cmp.Diff([]string{"common_work", "do_aaa", "unknown"}, req.Schema.Properties[0].Schema.Enum); diff != "" {
		t.Errorf("intents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"domaaa", "unknown"}, req.Schema.Properties[1].Schema.Items.Enum); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
	m := &fakeModel{do: replyTexts(`{"intent":"do_bbb","domains":["domccc"],"subtasks":[],"confidence":1}`)}
	if got := open(t, classifier.Config{Model: m, ShortlistK: 1}).Classify(t.Context(), in); got.Intent != "do_bbb" || got.Source != contract.SourceLLM {
		t.Errorf("got %s from %s, want do_bbb from llm", got.Intent, got.Source)
	}
}

// TestShortlist_Examples checks that each intent has an example before one has two.
func TestShortlist_Examples(t *testing.T) {
	s := snapshot(&contract.RegistryEntry{
		ID: "a", Match: contract.Match{Intent: []string{"x", "y", "z"}, Domains: []string{"d"}},
		Examples: map[string][]string{"x": {"x one", "x two", "x three"}, "z": {"z one"}, "other": {"of an intent it does not serve"}},
	})
	user := modelRequest(t, classifier.Config{}, input(s, "hello")).User
	if want := `"x one", "z one", "x two"`; !strings.Contains(user, want) || strings.Contains(user, "does not serve") {
		t.Errorf("got a prompt without %s:\n%s", want, user)
	}
}

// TestShortlist_IsDeterministic checks that the shortlist is deterministic, complete and in
// registry order.
func TestShortlist_IsDeterministic(t *testing.T) {
	s := similarAgents(40)
	words := input(s, "").Lexical
	rapid.Check(t, func(rt *rapid.T) {
		places := rapid.IntRange(1, 12).Draw(rt, "places")
		prompt := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"review", "code", "azure", "paper", "file007", "poem", "cost", "verses", "x"})).Draw(rt, "prompt"), " ")
		in := classifier.Input{Prompt: prompt, Catalogue: s, Lexical: words}
		cfg := classifier.Config{ShortlistK: places}
		first, second := listedAgents(modelRequest(t, cfg, in)), listedAgents(modelRequest(t, cfg, in))
		if diff := cmp.Diff(first, second); diff != "" {
			rt.Errorf("got two shortlists (-first +second):\n%s", diff)
		}
		if len(first) != places || !slices.IsSorted(first) {
			rt.Errorf("got %q, want %d agents in the order of the registry", first, places)
		}
	})
}
