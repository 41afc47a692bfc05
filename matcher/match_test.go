package matcher_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// scores formats candidates as "id score (intent+domains+constraints) domains".
func scores(candidates []contract.Candidate) []string {
	list := []string{}
	for _, c := range candidates {
		list = append(list, fmt.Sprintf("%s %.2f (%.2f%+.2f%+.2f) %v eligible=%t",
			c.AgentID, c.Score, c.Parts.Intent, c.Parts.Domains, c.Parts.Constraints, c.MatchedDomains, c.Eligible))
	}
	return list
}

func TestMatch_SourceRegistry(t *testing.T) {
	for _, tc := range []struct {
		name    string
		intent  string
		domains []string
		bytes   int
		want    []string
	}{
		{
			name: "intent and one domain", intent: "code_review", domains: []string{"python"},
			want: []string{"quality_agent 0.80 (0.50+0.30+0.00) [python] eligible=true"},
		},
		{
			name: "another agent, domain of two agents", intent: "cost_analysis", domains: []string{"databricks"},
			want: []string{"billing_agent 0.80 (0.50+0.30+0.00) [databricks] eligible=true"},
		},
		{
			name: "two domains", intent: "code_review", domains: []string{"databricks", "python"},
			want: []string{"quality_agent 1.10 (0.50+0.60+0.00) [databricks python] eligible=true"},
		},
		{
			name: "three domains, maximum reached", intent: "code_review", domains: []string{"semaforo", "python", "databricks"},
			want: []string{"quality_agent 1.10 (0.50+0.60+0.00) [semaforo python databricks] eligible=true"},
		},
		{
			name: "duplicate domain", intent: "code_review", domains: []string{"python", "python"},
			want: []string{"quality_agent 0.80 (0.50+0.30+0.00) [python] eligible=true"},
		},
		{
			name: "undeclared domains", intent: "retrieval_qa", domains: []string{"unknown", "docs", "cobol"},
			want: []string{"rag_agent 0.80 (0.50+0.30+0.00) [docs] eligible=true"},
		},
		{
			name: "8000 tokens", intent: "code_review", domains: []string{"python"}, bytes: 32_000,
			want: []string{"quality_agent 0.80 (0.50+0.30+0.00) [python] eligible=true"},
		},
		{
			name: "8001 tokens", intent: "code_review", domains: []string{"python"}, bytes: 32_001,
			want: []string{"quality_agent 0.60 (0.50+0.30-0.20) [python] eligible=false"},
		},
		{
			name: "constraint violated, two domains", intent: "code_review", domains: []string{"python", "databricks"}, bytes: 32_001,
			want: []string{"quality_agent 0.90 (0.50+0.60-0.20) [python databricks] eligible=true"},
		},
		{name: "intent only", intent: "code_review", domains: []string{"azure"}, want: []string{}},
		{name: "domains only", intent: "unknown", domains: []string{"python", "databricks"}, want: []string{}},
		{name: "no domains", intent: "code_review", want: []string{}},
		{name: "unknown", intent: "unknown", domains: []string{"unknown"}, want: []string{}},
		{name: "empty query", want: []string{}},
		{name: "label in another case", intent: "Code_Review", domains: []string{"python"}, want: []string{}},
		{name: "intent and domain swapped", intent: "python", domains: []string{"code_review"}, want: []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := matcher.Query{Intent: tc.intent, Domains: tc.domains, PromptBytes: tc.bytes, Caller: everyone, Confidence: 1}
			got := scores(describe(build(sourceRegistry()...), &q, nil))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatch_Wildcard(t *testing.T) {
	for _, tc := range []struct {
		name     string
		declared []string
		asked    []string
		want     []string // matched domains; nil = no candidate
	}{
		{"undeclared domain", []string{"*"}, []string{"python"}, []string{"*"}},
		{"two undeclared domains", []string{"*"}, []string{"python", "docs"}, []string{"*"}},
		{"unknown domain", []string{"*"}, []string{"unknown"}, []string{"*"}},
		{"one declared, one undeclared", []string{"*", "python"}, []string{"python", "docs"}, []string{"python", "*"}},
		{"all declared", []string{"*", "python"}, []string{"python"}, []string{"python"}},
		{"no domain in the query", []string{"*"}, nil, nil},
		{"wildcard in the query", []string{"python"}, []string{"*"}, nil},
		{"wildcard in query and entry", []string{"*"}, []string{"*"}, []string{"*"}},
		{"unknown in query and entry", []string{"unknown"}, []string{"unknown"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := reviewQuery(everyone)
			q.Domains = tc.asked
			got := describe(build(agent("a", []string{"code_review"}, tc.declared)), &q, nil)
			if tc.want == nil {
				if len(got) != 0 {
					t.Errorf("got %v, want no candidate", scores(got))
				}
				return
			}
			if len(got) != 1 || !slices.Equal(got[0].MatchedDomains, tc.want) {
				t.Fatalf("got %v, want matched domains %v", scores(got), tc.want)
			}
		})
	}
}

func TestMatch_Order(t *testing.T) {
	priority := func(p int) func(*contract.RegistryEntry) {
		return func(a *contract.RegistryEntry) { a.Priority = p }
	}
	intents := []string{"code_review"}
	agents := []*contract.RegistryEntry{
		agent("g-any-domain", intents, []string{"*"}),
		reviewer("f-last-id"),
		reviewer("e-first-id"),
		reviewer("h-priority", priority(1)),
		agent("d-declares-more", intents, []string{"python", "docs"}),
		agent("c-three-matched", intents, []string{"python", "azure", "gcp", "aws", "cobol", "fortran"}),
		agent("b-two-matched", intents, []string{"python", "azure", "go", "rust"}),
		with(agent("a-violated", intents, []string{"python", "azure", "gcp"}), func(a *contract.RegistryEntry) { a.Constraints.MaxTokens = 1 }),
	}
	q := reviewQuery(everyone)
	q.Domains = []string{"python", "azure", "gcp"}
	want := []string{
		"c-three-matched", // 1.10, three domains although it declares most
		"b-two-matched",   // 1.10, two domains
		"a-violated",      // 0.90
		"h-priority",      // 0.80 from here: fewest declared, then priority
		"e-first-id",
		"f-last-id",
		"d-declares-more",
		"g-any-domain", // "*" means all domains: least specific, even with two labels
	}
	if diff := cmp.Diff(want, ids(describe(build(agents...), &q, nil))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestMatch_Gates(t *testing.T) {
	requires := func(r contract.Requires) *contract.RegistryEntry {
		return reviewer("a", func(a *contract.RegistryEntry) { a.Requires = r })
	}
	accepts := func(classes ...string) *contract.RegistryEntry {
		return reviewer("a", func(a *contract.RegistryEntry) { a.AcceptsDataClasses = classes })
	}
	ours := &contract.Caller{Tenant: "north", Scopes: []string{"repo:read"}, AllAgents: true}
	for _, tc := range []struct {
		name   string
		agent  *contract.RegistryEntry
		caller *contract.Caller
		live   func(*matcher.LiveState)
		query  func(*matcher.Query)
		want   matcher.GateSet
	}{
		{name: "no gate"},
		{name: "disabled", live: inState(contract.AgentDisabled), want: matcher.GateState},
		{name: "draining", live: inState(contract.AgentDraining), want: matcher.GateState},
		{name: "tool cannot be called", live: func(s *matcher.LiveState) { s.SetCallable(false) }, want: matcher.GateState},
		{name: "expired", live: inState(contract.AgentExpired), want: matcher.GateState},
		{name: "unknown state", live: inState("paused"), want: matcher.GateState},
		{name: "active", live: inState(contract.AgentActive)},
		{name: "degraded", live: inState(contract.AgentDegraded)},
		{name: "breaker open", live: func(s *matcher.LiveState) { s.SetOpenUntil(nowMS + 1) }, want: matcher.GateState},
		{name: "breaker's open period over", live: func(s *matcher.LiveState) { s.SetOpenUntil(nowMS) }},
		{name: "at the limit", live: func(s *matcher.LiveState) { s.SetLimit(1); s.Acquire() }, want: matcher.GateState},
		{name: "below the limit", live: func(s *matcher.LiveState) { s.SetLimit(2); s.Acquire() }},
		{name: "scope held", agent: requires(contract.Requires{Scopes: []string{"repo:read"}}), caller: ours},
		{name: "scope missing", agent: requires(contract.Requires{Scopes: []string{"repo:read", "repo:write"}}), caller: ours, want: matcher.GateScopes},
		{name: "tenant served", agent: requires(contract.Requires{Tenants: []string{"south", "north"}}), caller: ours},
		{name: "tenant not served", agent: requires(contract.Requires{Tenants: []string{"south"}}), caller: ours, want: matcher.GateTenant},
		{name: "no tenant", agent: requires(contract.Requires{Tenants: []string{"south", ""}}), caller: everyone, want: matcher.GateTenant},
		{name: "data class not in the request", agent: requires(contract.Requires{DataClasses: []string{"email"}}), want: matcher.GateDataClasses},
		{
			name:  "one of two data classes in the request",
			agent: requires(contract.Requires{DataClasses: []string{"email", "phone"}}),
			query: func(q *matcher.Query) { q.DataClasses = []string{"phone"} },
			want:  matcher.GateDataClasses,
		},
		{
			name:  "data classes in the request",
			agent: requires(contract.Requires{DataClasses: []string{"email", "phone"}}),
			query: func(q *matcher.Query) { q.DataClasses = []string{"card", "email", "phone"} },
		},
		{name: "accepts no data, request without data", agent: accepts("none")},
		{
			name:  "accepts no data",
			agent: accepts("none"),
			query: func(q *matcher.Query) { q.DataClasses = []string{"email"} },
			want:  matcher.GateAcceptance,
		},
		{
			name:  "accepts data of the prompt, not of the inputs",
			agent: accepts("email"),
			query: func(q *matcher.Query) { q.DataClasses, q.InputClasses = []string{"email"}, []string{"card"} },
			want:  matcher.GateAcceptance,
		},
		{
			name:  "accepts all data",
			agent: accepts("all"),
			query: func(q *matcher.Query) { q.DataClasses, q.InputClasses = []string{"email"}, []string{"card"} },
		},
		{name: "unsure", query: func(q *matcher.Query) { q.Confidence = 0.64 }, want: matcher.GateConfidence},
		{name: "confidence at the threshold", query: func(q *matcher.Query) { q.Confidence = 0.65 }},
		{name: "confidence NaN", query: func(q *matcher.Query) { q.Confidence = math.NaN() }, want: matcher.GateConfidence},
		{
			name:  "below the threshold",
			agent: reviewer("a", func(a *contract.RegistryEntry) { a.Constraints.MaxTokens = 24 }),
			want:  matcher.GateThreshold,
		},
		{
			name:   "several gates",
			agent:  requires(contract.Requires{Scopes: []string{"x"}, Tenants: []string{"south"}, DataClasses: []string{"email"}}),
			caller: ours,
			live:   func(s *matcher.LiveState) { s.SetState(contract.AgentDisabled); s.SetOpenUntil(math.MaxInt64) },
			query:  func(q *matcher.Query) { q.MinConfidence = 1 },
			want:   matcher.GateState | matcher.GateScopes | matcher.GateTenant | matcher.GateDataClasses | matcher.GateConfidence,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, q := tc.agent, reviewQuery(everyone)
			if a == nil {
				a = reviewer("a")
			}
			if tc.caller != nil {
				q.Caller = tc.caller
			}
			if tc.query != nil {
				tc.query(&q)
			}
			live := matcher.Live{{}}
			if tc.live != nil {
				tc.live(live[0])
			}
			var res matcher.Result
			build(a).Match(&q, live, &res)
			if res.N != 1 || res.Total != 1 || res.Hidden != 0 {
				t.Fatalf("got N, Total, Hidden %d, %d, %d, want 1, 1, 0", res.N, res.Total, res.Hidden)
			}
			c := &res.Candidates[0]
			if c.Failed != tc.want || c.Eligible() != (tc.want == 0) {
				t.Errorf("got gates %b and eligible %t, want gates %b", c.Failed, c.Eligible(), tc.want)
			}
		})
	}
}
