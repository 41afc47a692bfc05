package matcher_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

func TestMatch_HidesAgentsOfOtherCallers(t *testing.T) {
	x := build(reviewer("a"), reviewer("b"), reviewer("c"))
	for _, tc := range []struct {
		name   string
		caller *contract.Caller
		only   string
		want   []string
		hidden []string
	}{
		{"everyone", everyone, "", []string{"a", "b", "c"}, []string{}},
		{"every agent, no other scope", &contract.Caller{AllAgents: true}, "", []string{"a", "b", "c"}, []string{}},
		{"one agent", &contract.Caller{Scopes: []string{"route:submit", "agent:b"}}, "", []string{"b"}, []string{"a", "c"}},
		{"no agent", &contract.Caller{Scopes: []string{"route:submit", "agent:bb", "agent:"}}, "", []string{}, []string{"a", "b", "c"}},
		{"administrator", &contract.Caller{Scopes: []string{"admin"}}, "", []string{}, []string{"a", "b", "c"}},
		{"no caller", nil, "", []string{}, []string{"a", "b", "c"}},
		{"agent_id", everyone, "b", []string{"b"}, []string{}},
		{"agent_id of a hidden agent", &contract.Caller{Scopes: []string{"agent:a"}}, "b", []string{}, []string{"b"}},
		{"agent_id of an unknown agent", everyone, "d", []string{}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := reviewQuery(tc.caller)
			q.Only = tc.only
			if diff := cmp.Diff(tc.want, ids(describe(x, &q, nil))); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
			var res matcher.Result
			x.Match(&q, nil, &res)
			if res.Total != len(tc.want) || res.Hidden != len(tc.hidden) {
				t.Errorf("got Total, Hidden %d, %d, want %d, %d", res.Total, res.Hidden, len(tc.want), len(tc.hidden))
			}
			var withheld []contract.Candidate
			for i := range res.Withheld() {
				c := x.Describe(&res.Withheld()[i], &q, nil)
				if want := []contract.Gate{{Gate: "entitlement", Reason: "needs scope agent:" + c.AgentID}}; c.Eligible || !cmp.Equal(want, c.Gates) {
					t.Errorf("%s: got eligible %t, gates %v, want %v", c.AgentID, c.Eligible, c.Gates, want)
				}
				withheld = append(withheld, c)
			}
			if diff := cmp.Diff(tc.hidden, ids(withheld)); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatch_AgentIDDoesNotLowerThreshold(t *testing.T) {
	q := reviewQuery(everyone)
	q.Only = "rag_agent"
	if got := describe(build(sourceRegistry()...), &q, nil); len(got) != 0 {
		t.Errorf("got %v, want no candidate, because agent_id does not lower the threshold", scores(got))
	}
}

func TestMatch_KeepsBestTwenty(t *testing.T) {
	var agents []*contract.RegistryEntry
	live := matcher.Live{}
	for i := range 50 { // a00 … a49 by ordinal; the even ones are disabled
		agents = append(agents, reviewer(fmt.Sprintf("a%02d", i)))
		live = append(live, &matcher.LiveState{})
		if i%2 == 0 {
			live[i].SetState(contract.AgentDisabled)
		}
	}
	q := reviewQuery(everyone)

	t.Run("eligible first", func(t *testing.T) {
		got := describe(build(agents...), &q, live)
		var want []string
		for i := 1; i < 40; i += 2 {
			want = append(want, fmt.Sprintf("a%02d", i))
		}
		if diff := cmp.Diff(want, ids(got)); diff != "" {
			t.Errorf("candidates (-want +got):\n%s", diff)
		}
	})
	t.Run("ineligible after them, in order", func(t *testing.T) {
		for i := range live {
			live[i].SetState(contract.AgentDisabled)
			if i == 7 || i == 49 {
				live[i].SetState(contract.AgentActive)
			}
		}
		got := ids(describe(build(agents...), &q, live))
		want := []string{}
		for i := range 19 {
			want = append(want, fmt.Sprintf("a%02d", i))
		}
		if diff := cmp.Diff(append(want, "a49"), got); diff != "" {
			t.Errorf("candidates (-want +got):\n%s", diff)
		}
	})
	t.Run("all counted", func(t *testing.T) {
		for _, live := range []matcher.Live{nil, live} {
			var res matcher.Result
			build(agents...).Match(&q, live, &res)
			if res.N != 20 || res.Total != 50 {
				t.Errorf("got N, Total %d, %d, want 20, 50", res.N, res.Total)
			}
		}
	})
}

// After twenty candidates that cannot be displaced, the remaining agents are only counted, as
// matching or hidden.
func TestMatch_CountsOmittedCandidates(t *testing.T) {
	crowd := func(n int, changes ...func(*contract.RegistryEntry)) []*contract.RegistryEntry {
		agents := make([]*contract.RegistryEntry, n)
		for i := range agents {
			agents[i] = reviewer(fmt.Sprintf("a%02d", i), changes...)
		}
		return agents
	}
	half := &contract.Caller{}
	for i := range 25 {
		half.Scopes = append(half.Scopes, fmt.Sprintf("agent:a%02d", i))
	}
	unrelated := func(n int) []string { return names("other", n) }
	for _, tc := range []struct {
		name          string
		agents        []*contract.RegistryEntry
		weights       matcher.Weights
		threshold     int
		caller        *contract.Caller
		total, hidden int
	}{
		{
			name: "all equal", agents: crowd(50), weights: matcher.DefaultWeights(), threshold: threshold, caller: everyone,
			total: 50,
		},
		{
			name: "some hidden", agents: crowd(50), weights: matcher.DefaultWeights(), threshold: threshold, caller: half,
			total: 25, hidden: 25,
		},
		{
			name:    "last list below the threshold",
			agents:  append(crowd(25), agent("intent-only", append(unrelated(5), "code_review"), nil)),
			weights: matcher.Weights{Intent: 20, Domain: 30, DomainMax: 60}, threshold: 25, caller: everyone,
			total: 25,
		},
		{
			name:    "agents with many labels that do not match",
			agents:  append(crowd(25), agent("broad-a", append(unrelated(20), "code_review"), unrelated(20)), agent("broad-b", append(unrelated(20), "code_review"), unrelated(20))),
			weights: matcher.DefaultWeights(), threshold: threshold, caller: everyone,
			total: 25,
		},
		{
			name:    "every agent matches",
			agents:  append(crowd(25), agent("b", nil, []string{"docs"}), agent("c", nil, []string{"docs"})),
			weights: matcher.DefaultWeights(), threshold: 0, caller: everyone,
			total: 27,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := reviewQuery(tc.caller)
			var res matcher.Result
			matcher.Build(tc.agents, tc.weights, tc.threshold).Match(&q, nil, &res)
			if res.Total != tc.total || res.Hidden != tc.hidden {
				t.Errorf("got Total, Hidden %d, %d, want %d, %d", res.Total, res.Hidden, tc.total, tc.hidden)
			}
		})
	}
}

// Twenty candidates with the best score of the last list but one do not end the search: the last
// list may contain better ones.
func TestMatch_SearchesLastList(t *testing.T) {
	var agents []*contract.RegistryEntry
	for i := range 21 { // 0.30 each, and first by ordinal
		agents = append(agents, agent(fmt.Sprintf("a%02d", i), nil, []string{"python"}))
	}
	agents = append(agents, agent("better", []string{"code_review", "code_style"}, nil)) // 0.50
	q := reviewQuery(everyone)
	got := ids(describe(matcher.Build(agents, matcher.DefaultWeights(), 30), &q, nil))
	if len(got) != 20 || got[0] != "better" || got[19] != "a18" {
		t.Errorf("got %v, want better, then a00 to a18", got)
	}
}

func TestMatch_ReusesResult(t *testing.T) {
	x := build(sourceRegistry()...)
	q := reviewQuery(everyone)
	var fresh, used matcher.Result
	for range 3 {
		used.N, used.Total, used.Hidden = 9, 9, 9
		x.Match(&q, nil, &used)
	}
	x.Match(&q, nil, &fresh)
	if used.N != fresh.N || used.Total != fresh.Total || used.Hidden != fresh.Hidden || !slices.Equal(used.Best(), fresh.Best()) {
		t.Errorf("got %v, want %v", used.Best(), fresh.Best())
	}
	q.Intent = "unknown"
	x.Match(&q, nil, &used)
	if len(used.Best()) != 0 || used.Total != 0 {
		t.Errorf("got %d candidates of %d, want none", used.N, used.Total)
	}
}

func TestNearest(t *testing.T) {
	q := matcher.Query{Intent: "code_review", Domains: []string{"azure"}, PromptBytes: 33_000, Caller: everyone, Confidence: 1}
	x := build(sourceRegistry()...)
	var res matcher.Result
	x.Nearest(&q, nil, &res)
	got := []string{}
	for i := range res.Best() {
		c := x.Describe(&res.Candidates[i], &q, nil)
		got = append(got, fmt.Sprintf("%s %.2f %v", c.AgentID, c.Score, c.Gates))
	}
	want := []string{
		"billing_agent 0.30 [{threshold score 0.30 is below the threshold 0.65}]",
		"quality_agent 0.30 [{threshold score 0.30 is below the threshold 0.65}]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("near misses (-want +got):\n%s", diff)
	}
	if res.Total != 2 {
		t.Errorf("got Total %d, want 2", res.Total)
	}
}

func TestMatch_AllocatesNothing(t *testing.T) {
	p := populate(2_000, true)
	for _, a := range p.agents[:1_000] {
		a.Requires.DataClasses, a.AcceptsDataClasses = []string{"email", "phone"}, contract.DataClasses{"email", "phone"}
	}
	for _, threshold := range []int{-1, 20, 45, threshold} {
		x := matcher.Build(p.agents, matcher.DefaultWeights(), threshold)
		live := make(matcher.Live, len(p.agents))
		for i := range live {
			live[i] = &matcher.LiveState{}
		}
		for _, caller := range []*contract.Caller{everyone, {Scopes: []string{"agent:agent-0000007"}}, nil} {
			queries := p.queries(50, 3, caller)
			queries[0].Only = p.agents[0].ID
			for i := range queries[:25] {
				queries[i].DataClasses = []string{"card", "email", "phone"}
			}
			var res matcher.Result
			allocs := testing.AllocsPerRun(10, func() {
				for i := range queries {
					x.Match(&queries[i], live, &res)
					x.Nearest(&queries[i], live, &res)
				}
			})
			if allocs != 0 {
				t.Errorf("threshold %d, caller %+v: got %v allocations, want 0", threshold, caller, allocs)
			}
		}
	}
}
