package matcher_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// Few labels, so that agents share them, and labels that an ambiguous key would confuse.
var (
	someIntents = []string{"review", "qa", "cost", "", "a\x00b", "*", "unknown"}
	someDomains = []string{"python", "docs", "azure", "", "a\x00b", "*", "unknown", "review"}
	someScopes  = []string{"repo:read", "repo:write", "agent:"}
	someTenants = []string{"north", "south", ""}
	someClasses = []string{"card", "email", "phone"}
)

const nowMS = 1_000_000

func subset(t *rapid.T, name string, from []string, most int) []string {
	return rapid.SliceOfN(rapid.SampledFrom(from), 0, most).Draw(t, name)
}

// rarely returns true about once in n draws; it shrinks to false.
func rarely(t *rapid.T, name string, n int) bool {
	return rapid.IntRange(0, n-1).Draw(t, name) == n-1
}

func drawAgent(t *rapid.T, id string) *contract.RegistryEntry {
	a := &contract.RegistryEntry{ID: id}
	a.Match.Intent = subset(t, "intents", someIntents, 3)
	a.Match.Domains = subset(t, "domains", someDomains, 3)
	if rarely(t, "broad", 12) { // more pairs than the index lists for an agent
		for i := range 17 {
			a.Match.Intent = append(a.Match.Intent, fmt.Sprint("i", i))
			a.Match.Domains = append(a.Match.Domains, fmt.Sprint("d", i))
		}
	}
	a.Constraints.MaxTokens = rapid.SampledFrom([]int{0, 0, 99, 100}).Draw(t, "max_tokens")
	a.Priority = rapid.IntRange(-1, 1).Draw(t, "priority")
	if rarely(t, "requires", 3) {
		a.Requires.Scopes = subset(t, "scopes", someScopes, 2)
		a.Requires.Tenants = subset(t, "tenants", someTenants, 2)
		if rarely(t, "data classes", 2) {
			a.Requires.DataClasses = subset(t, "data classes", someClasses, 2)
		}
	}
	if rarely(t, "accepts", 4) {
		a.AcceptsDataClasses = rapid.SampledFrom([]contract.DataClasses{{"all"}, {"none"}, someClasses[:1], someClasses}).Draw(t, "accepted")
	}
	return a
}

func drawAgents(t *rapid.T, most int) []*contract.RegistryEntry {
	n := rapid.IntRange(0, most).Draw(t, "agents")
	agents := make([]*contract.RegistryEntry, n)
	for i := range agents {
		agents[i] = drawAgent(t, fmt.Sprintf("a%d", i))
	}
	return agents
}

func drawLive(t *rapid.T, agents []*contract.RegistryEntry) map[string]*matcher.LiveState {
	live := map[string]*matcher.LiveState{}
	for _, a := range agents {
		if !rarely(t, "live", 4) {
			continue
		}
		s := &matcher.LiveState{}
		s.SetState(rapid.SampledFrom(allStates).Draw(t, "state"))
		s.SetOpenUntil(rapid.Int64Range(nowMS-1, nowMS+1).Draw(t, "open until"))
		for range rapid.IntRange(0, 2).Draw(t, "in flight") {
			s.Acquire()
		}
		s.SetLimit(rapid.IntRange(0, 3).Draw(t, "limit"))
		live[a.ID] = s
	}
	return live
}

func drawCaller(t *rapid.T, agents []*contract.RegistryEntry) *contract.Caller {
	c := &contract.Caller{
		Tenant:    rapid.SampledFrom(someTenants).Draw(t, "tenant"),
		Scopes:    subset(t, "caller scopes", someScopes, 3),
		AllAgents: rapid.Bool().Draw(t, "all agents"),
		AllScopes: rarely(t, "all scopes", 3),
	}
	for _, a := range agents {
		if rapid.Bool().Draw(t, "entitled") {
			c.Scopes = append(c.Scopes, "agent:"+a.ID)
		}
	}
	if rarely(t, "nobody", 12) {
		return nil
	}
	return c
}

func drawQuery(t *rapid.T, agents []*contract.RegistryEntry) matcher.Query {
	q := matcher.Query{
		Intent:        rapid.SampledFrom(append([]string{"nobody's", "i3"}, someIntents...)).Draw(t, "intent"),
		Domains:       subset(t, "query domains", append([]string{"nobody's", "no one's", "d3"}, someDomains...), 5),
		DataClasses:   subset(t, "found", someClasses, 3),
		InputClasses:  subset(t, "found in inputs", someClasses, 1),
		PromptBytes:   rapid.SampledFrom([]int{0, 396, 397, 400, 401}).Draw(t, "bytes"),
		Caller:        drawCaller(t, agents),
		Confidence:    rapid.SampledFrom([]float64{0.5, 0.7, 1}).Draw(t, "confidence"),
		MinConfidence: 0.5,
		NowMS:         nowMS,
	}
	if rarely(t, "unsure", 6) {
		q.MinConfidence = 0.9
	}
	if rarely(t, "tied", 3) {
		q.Tied = subset(t, "tied intents", append([]string{"nobody's", "unknown"}, someIntents...), matcher.MaxTied)
	}
	if rarely(t, "only", 6) {
		q.Only = fmt.Sprintf("a%d", rapid.IntRange(0, len(agents)).Draw(t, "which"))
	}
	return q
}

func drawWeights(t *rapid.T) matcher.Weights {
	if rapid.Bool().Draw(t, "default weights") {
		return matcher.DefaultWeights()
	}
	w := func(name string) int { return rapid.IntRange(0, 12).Draw(t, name) * 10 }
	return matcher.Weights{Intent: w("w intent"), Domain: w("w domain"), DomainMax: w("w max"), Violation: w("w violation")}
}

func drawSetup(t *rapid.T) *setup {
	agents := drawAgents(t, 60)
	if rapid.Bool().Draw(t, "crowd") { // far more than 20 equal agents
		first := drawAgent(t, "")
		for i := range 50 {
			a := *first
			a.ID = fmt.Sprintf("crowd%d", i)
			agents = append(agents, &a)
		}
	}
	return &setup{
		Agents:    agents,
		Weights:   drawWeights(t),
		Threshold: rapid.IntRange(-10, 120).Draw(t, "threshold"),
		Live:      drawLive(t, agents),
		Query:     drawQuery(t, agents),
	}
}

func TestMatch_EqualsNaiveLoop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		if diff := cmp.Diff(s.naive(false), s.indexed(false)); diff != "" {
			t.Fatalf("Match differs from the naive loop (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(s.naive(true), s.indexed(true)); diff != "" {
			t.Fatalf("Nearest differs from the naive loop (-want +got):\n%s", diff)
		}
	})
}

func TestMatch_IgnoresOrderOfAgents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		want := s.indexed(false)
		s.Agents = rapid.Permutation(s.Agents).Draw(t, "permutation")
		if diff := cmp.Diff(want, s.indexed(false)); diff != "" {
			t.Fatalf("got another result for another order of agents (-want +got):\n%s", diff)
		}
	})
}

func TestMatch_KeepsEligibleCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		got := s.indexed(false)
		whole := *s
		eligible := 0
		for _, a := range s.Agents { // matched alone, so that no other agent displaces it
			whole.Agents = []*contract.RegistryEntry{a}
			if out := whole.indexed(false); len(out.Candidates) == 1 && out.Candidates[0].Eligible {
				eligible++
			}
		}
		listed := 0
		for _, c := range got.Candidates {
			if c.Eligible {
				listed++
			}
		}
		if want := min(eligible, matcher.MaxCandidates); listed != want {
			t.Fatalf("got %d eligible candidates, want %d of %d", listed, want, eligible)
		}
	})
}

// scoreOf matches one agent and returns its score, or 0.
func scoreOf(t *rapid.T, w matcher.Weights, a *contract.RegistryEntry, q matcher.Query) int {
	q.Caller, q.Only = everyone, ""
	s := setup{Agents: []*contract.RegistryEntry{a}, Weights: w, Threshold: -1000, Query: q}
	out := s.indexed(false)
	if len(out.Candidates) != 1 {
		t.Fatalf("got %d candidates, want the one agent", len(out.Candidates))
	}
	return out.Candidates[0].Score
}

func TestMatch_ScoreBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got := scoreOf(t, matcher.DefaultWeights(), drawAgent(t, "a0"), drawQuery(t, nil))
		if got < -20 || got > 110 {
			t.Fatalf("got score %d, want one in -20…110", got)
		}
	})
}

func TestMatch_MatchingDomainDoesNotLowerScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a, q := drawWeights(t), drawAgent(t, "a0"), drawQuery(t, nil)
		before := scoreOf(t, w, a, q)

		declares := *a
		declares.Match.Domains = append(slices.Clone(a.Match.Domains), append(q.Domains, "other")[0])
		if got := scoreOf(t, w, &declares, q); got < before {
			t.Fatalf("agent with domain %q added: got score %d, want ≥ %d", declares.Match.Domains, got, before)
		}
		asks := q
		asks.Domains = append(slices.Clone(q.Domains), append(a.Match.Domains, "other")[0])
		if got := scoreOf(t, w, a, asks); got < before {
			t.Fatalf("query with domain %q added: got score %d, want ≥ %d", asks.Domains, got, before)
		}
	})
}

func TestMatch_ViolationDoesNotRaiseScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, a, q := drawWeights(t), drawAgent(t, "a0"), drawQuery(t, nil)
		a.Constraints.MaxTokens = 0
		before := scoreOf(t, w, a, q)
		a.Constraints.MaxTokens = rapid.IntRange(1, 200).Draw(t, "max_tokens")
		after := scoreOf(t, w, a, q)
		if after != before && after != before-w.Violation || after > before {
			t.Fatalf("with a limit of %d tokens for %d bytes: got score %d, want %d or %d less",
				a.Constraints.MaxTokens, q.PromptBytes, after, before, w.Violation)
		}
	})
}

func TestMatch_IsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		first, second := fmt.Sprintf("%+v", s.indexed(false)), fmt.Sprintf("%+v", s.indexed(false))
		if first != second {
			t.Fatalf("got\n%s\nwant\n%s", second, first)
		}
	})
}
