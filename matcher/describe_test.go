package matcher_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

func TestDescribe(t *testing.T) {
	quality := sourceRegistry()[0]
	q := matcher.Query{Intent: "code_review", Domains: []string{"cobol", "python"}, PromptBytes: 40_000, Caller: everyone, Confidence: 1}
	got := describe(build(quality), &q, nil)
	want := []contract.Candidate{{
		AgentID:        "quality_agent",
		Score:          0.6,
		Parts:          contract.ScoreParts{Intent: 0.5, Domains: 0.3, Constraints: -0.2},
		MatchedDomains: []string{"python"},
		Role:           contract.RoleCandidate,
		Gates:          []contract.Gate{{Gate: "threshold", Reason: "score 0.60 is below the threshold 0.65"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}

// The lists of an eligible candidate are empty, not nil, because they are encoded.
func TestDescribe_EmptyLists(t *testing.T) {
	q := matcher.Query{Intent: "code_review", Caller: everyone}
	got := describe(matcher.Build(sourceRegistry()[:1], matcher.DefaultWeights(), 50), &q, nil)
	if len(got) != 1 {
		t.Fatalf("got %d candidates, want 1", len(got))
	}
	if got[0].Gates == nil || got[0].MatchedDomains == nil {
		t.Errorf("got gates %#v and domains %#v, want empty lists", got[0].Gates, got[0].MatchedDomains)
	}
}

func TestDescribe_GateReasons(t *testing.T) {
	requires := func(r contract.Requires) *contract.RegistryEntry {
		return reviewer("a", func(a *contract.RegistryEntry) { a.Requires = r })
	}
	limited := func(n int) func(*matcher.LiveState) {
		return func(s *matcher.LiveState) {
			s.SetLimit(n)
			for range n {
				s.Acquire()
			}
		}
	}
	for _, tc := range []struct {
		name   string
		agent  *contract.RegistryEntry
		caller contract.Caller
		live   func(*matcher.LiveState)
		query  func(*matcher.Query)
		want   contract.Gate
	}{
		{
			name: "disabled",
			live: func(s *matcher.LiveState) { s.SetState(contract.AgentDisabled) },
			want: contract.Gate{Gate: "state", Reason: "disabled"},
		},
		{
			name: "draining",
			live: func(s *matcher.LiveState) { s.SetState(contract.AgentDraining) },
			want: contract.Gate{Gate: "state", Reason: "draining: it takes no new tasks"},
		},
		{
			name: "tool cannot be called",
			live: func(s *matcher.LiveState) { s.SetCallable(false) },
			want: contract.Gate{Gate: "state", Reason: "its tool cannot be called"},
		},
		{
			name: "expired",
			live: func(s *matcher.LiveState) { s.SetState(contract.AgentExpired) },
			want: contract.Gate{Gate: "state", Reason: "expired: no heartbeat came in time"},
		},
		{
			name: "breaker, seconds rounded up",
			live: func(s *matcher.LiveState) { s.SetOpenUntil(nowMS + 6001) },
			want: contract.Gate{Gate: "state", Reason: "breaker open for another 7 s"},
		},
		{
			name: "breaker, whole seconds",
			live: func(s *matcher.LiveState) { s.SetOpenUntil(nowMS + 7000) },
			want: contract.Gate{Gate: "state", Reason: "breaker open for another 7 s"},
		},
		{
			name: "breaker, last millisecond",
			live: func(s *matcher.LiveState) { s.SetOpenUntil(nowMS + 1) },
			want: contract.Gate{Gate: "state", Reason: "breaker open for another 1 s"},
		},
		{
			name: "at capacity",
			live: limited(64),
			want: contract.Gate{Gate: "state", Reason: "at its limit of 64 tasks in flight"},
		},
		{
			name: "at a capacity of one",
			live: limited(1),
			want: contract.Gate{Gate: "state", Reason: "at its limit of 1 task in flight"},
		},
		{
			name:  "one scope missing",
			agent: requires(contract.Requires{Scopes: []string{"a", "repo:read"}}), caller: contract.Caller{Scopes: []string{"a"}},
			want: contract.Gate{Gate: "scopes", Reason: "needs scope repo:read"},
		},
		{
			name:  "three scopes missing",
			agent: requires(contract.Requires{Scopes: []string{"a", "b", "c"}}),
			want:  contract.Gate{Gate: "scopes", Reason: "needs scopes a, b and c"},
		},
		{
			name:  "wrong tenant, required ones not named",
			agent: requires(contract.Requires{Tenants: []string{"south"}}), caller: contract.Caller{Tenant: "north"},
			want: contract.Gate{Gate: "tenant", Reason: "does not serve tenant north"},
		},
		{
			name:  "no tenant",
			agent: requires(contract.Requires{Tenants: []string{"south"}}),
			want:  contract.Gate{Gate: "tenant", Reason: "serves named tenants only; the caller's token names none"},
		},
		{
			name:  "data classes",
			agent: requires(contract.Requires{DataClasses: []string{"email", "phone"}}),
			want:  contract.Gate{Gate: "data_classes", Reason: "needs email and phone in the request; not found"},
		},
		{
			name:  "one data class of three",
			agent: requires(contract.Requires{DataClasses: []string{"card", "email", "iban"}}),
			query: func(q *matcher.Query) { q.DataClasses = []string{"card", "iban"} },
			want:  contract.Gate{Gate: "data_classes", Reason: "needs email in the request; not found"},
		},
		{
			name:  "data classes that are not accepted",
			agent: reviewer("a", func(a *contract.RegistryEntry) { a.AcceptsDataClasses = contract.DataClasses{"email"} }),
			query: func(q *matcher.Query) {
				q.DataClasses, q.InputClasses = []string{"email", "phone"}, []string{"card", "phone"}
			},
			want: contract.Gate{Gate: "accepts_data_classes", Reason: "does not accept card and phone, which the request contains"},
		},
		{
			name:  "threshold",
			agent: reviewer("a", func(a *contract.RegistryEntry) { a.Constraints.MaxTokens = 1 }),
			want:  contract.Gate{Gate: "threshold", Reason: "score 0.60 is below the threshold 0.65"},
		},
		{
			name:  "confidence",
			query: func(q *matcher.Query) { q.Confidence = 0.41234 },
			want:  contract.Gate{Gate: "confidence", Reason: "confidence 0.41 is below the minimum 0.65"},
		},
		{
			name:  "confidence, all digits if two look equal",
			query: func(q *matcher.Query) { q.Confidence = 0.6499 },
			want:  contract.Gate{Gate: "confidence", Reason: "confidence 0.6499 is below the minimum 0.65"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := tc.agent
			if a == nil {
				a = reviewer("a")
			}
			tc.caller.AllAgents = true
			q, live := reviewQuery(&tc.caller), matcher.Live{{}}
			if tc.live != nil {
				tc.live(live[0])
			}
			if tc.query != nil {
				tc.query(&q)
			}
			got := describe(build(a), &q, live)
			if len(got) != 1 {
				t.Fatalf("got %d candidates, want 1", len(got))
			}
			if diff := cmp.Diff([]contract.Gate{tc.want}, got[0].Gates); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
		})
	}
}

// The result of Match remains, even if the agent has recovered since.
func TestDescribe_AfterStateChange(t *testing.T) {
	x, q := build(reviewer("a")), reviewQuery(everyone)
	live := matcher.Live{{}}
	live[0].SetOpenUntil(nowMS + 1000)
	live[0].SetLimit(1)
	live[0].Acquire()
	var res matcher.Result
	x.Match(&q, live, &res)

	live[0].SetOpenUntil(0)
	live[0].SetLimit(0)
	want := []contract.Gate{
		{Gate: "state", Reason: "breaker open"},
		{Gate: "state", Reason: "at its limit of tasks in flight"},
	}
	for name, live := range map[string]matcher.Live{"changed": live, "gone": nil} {
		got := x.Describe(&res.Candidates[0], &q, live)
		if diff := cmp.Diff(want, got.Gates); diff != "" || got.Eligible {
			t.Errorf("%s: got eligible %t, gates (-want +got):\n%s", name, got.Eligible, diff)
		}
	}
}

func TestTieBreak(t *testing.T) {
	prefers := func(a *contract.RegistryEntry) { a.Priority = 5 }
	limited := func(a *contract.RegistryEntry) { a.Constraints.MaxTokens = 1 }
	intents := []string{"code_review"}
	for _, tc := range []struct {
		name          string
		domains       []string
		winner, loser *contract.RegistryEntry
		want          *contract.TieBreak
	}{
		{
			name: "score", domains: []string{"python"},
			winner: reviewer("a"), loser: reviewer("b", limited),
		},
		{
			name: "matched domains", domains: []string{"python", "docs", "azure"},
			winner: agent("b", intents, []string{"python", "docs", "azure"}),
			loser:  agent("a", intents, []string{"python", "docs"}),
			want: &contract.TieBreak{
				Rule: "matched_domains", Winner: "b", Over: "a",
				Reason: "both score 1.10: b matches 3 domains of the request, a matches 2",
			},
		},
		{
			name: "fewer labels declared", domains: []string{"python"},
			winner: reviewer("b"), loser: agent("a", intents, []string{"python", "docs"}),
			want: &contract.TieBreak{
				Rule: "specificity", Winner: "b", Over: "a",
				Reason: "both score 0.80: b declares 2 intents and domains, a declares 3",
			},
		},
		{
			name: "wildcard is least specific", domains: []string{"python"},
			winner: agent("b", intents, []string{"python", "docs"}), loser: agent("a", intents, []string{"*"}),
			want: &contract.TieBreak{
				Rule: "specificity", Winner: "b", Over: "a",
				Reason: `both score 0.80: a declares any domain ("*"), b names its domains`,
			},
		},
		{
			name: "priority", domains: []string{"python"},
			winner: reviewer("b", prefers), loser: reviewer("a"),
			want: &contract.TieBreak{
				Rule: "priority", Winner: "b", Over: "a",
				Reason: "both score 0.80: b has priority 5, a has 0",
			},
		},
		{
			name: "id", domains: []string{"python"},
			winner: reviewer("a"), loser: reviewer("b"),
			want: &contract.TieBreak{
				Rule: "id", Winner: "a", Over: "b",
				Reason: "both score 0.80: a comes first by id",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := reviewQuery(everyone)
			q.Domains = tc.domains
			x := build(tc.loser, tc.winner)
			var res matcher.Result
			x.Match(&q, nil, &res)
			if got := ids(describe(x, &q, nil)); len(got) != 2 || got[0] != tc.winner.ID {
				t.Fatalf("got order %v, want %s before %s", got, tc.winner.ID, tc.loser.ID)
			}
			got := x.TieBreak(&res.Candidates[0], &res.Candidates[1])
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tie break (-want +got):\n%s", diff)
			}
		})
	}
}
