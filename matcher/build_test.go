package matcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

func TestBuild_OrdersAgentsByTieBreak(t *testing.T) {
	priority := func(p int) func(*contract.RegistryEntry) {
		return func(a *contract.RegistryEntry) { a.Priority = p }
	}
	x := build(
		agent("any", nil, []string{"*"}),
		agent("any-and-more", []string{"i"}, []string{"*", "d"}),
		agent("three", []string{"i"}, []string{"d", "e"}),
		agent("three-twice", []string{"i", "i", "j"}, []string{"d", "d"}),
		agent("two-b", []string{"i"}, []string{"d"}),
		agent("two-a", []string{"i"}, []string{"d"}),
		with(agent("two-urgent", []string{"i"}, []string{"d"}), priority(1)),
		with(agent("two-idle", []string{"i"}, []string{"d"}), priority(-1)),
		agent("unknown-is-a-name-here", []string{"unknown"}, nil),
		agent("nothing", nil, nil),
	)
	var got []string
	for _, a := range x.Agents() {
		got = append(got, a.ID)
	}
	want := []string{
		"nothing", "unknown-is-a-name-here", "two-urgent", "two-a", "two-b", "two-idle",
		"three", "three-twice", "any", "any-and-more",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ordinals (-want +got):\n%s", diff)
	}
}

func TestBuild_DoesNotModifyInput(t *testing.T) {
	agents := sourceRegistry()
	slices.Reverse(agents)
	before := slices.Clone(agents)
	build(agents...)
	if !slices.Equal(before, agents) {
		t.Errorf("got another order of the caller's slice, want it unchanged")
	}
}

func TestMatch_EmptyRegistry(t *testing.T) {
	for _, threshold := range []int{-10, 0, threshold} {
		x := matcher.Build(nil, matcher.DefaultWeights(), threshold)
		q := reviewQuery(everyone)
		for _, only := range []string{"", "a"} {
			q.Only = only
			if got := describe(x, &q, nil); len(got) != 0 {
				t.Errorf("threshold %d: got %v, want no candidate", threshold, scores(got))
			}
		}
	}
}

// Labels are separated in keys, so that two labels cannot be read as others.
func TestMatch_LabelsDoNotCollide(t *testing.T) {
	strange := []string{"", " ", "a", "a b", "a\x00b", "b", "a/b", "a|b", "A", "á", "a\u0301", "a,b", "(*)", "**", "\xff", strings.Repeat("x", 1<<16)}
	var agents []*contract.RegistryEntry
	for i, intent := range strange {
		for j, domain := range strange {
			agents = append(agents, agent(fmt.Sprintf("a-%d-%d", i, j), []string{intent}, []string{domain}))
		}
	}
	x := build(agents...)
	for i, intent := range strange {
		for j, domain := range strange {
			q := matcher.Query{Intent: intent, Domains: []string{domain}, Caller: everyone}
			want := []string{fmt.Sprintf("a-%d-%d", i, j)}
			if diff := cmp.Diff(want, ids(describe(x, &q, nil))); diff != "" {
				t.Errorf("intent %.20q, domain %.20q (-want +got):\n%s", intent, domain, diff)
			}
		}
	}
}

// An agent with very many labels is found like any other. The memory grows linearly with the number
// of its labels, not with its square.
func TestMatch_AgentWithManyLabels(t *testing.T) {
	const many = 20_000 // 4e8 pairs
	wide := agent("wide", names("intent", many), append(names("domain", many), "*"))
	plain := agent("plain", []string{"intent_of_kind_00007"}, []string{"domain_of_kind_00009"})
	x := build(wide, plain)
	for _, tc := range []struct {
		name    string
		intent  string
		domains []string
		want    []string
	}{
		{"both", "intent_of_kind_00007", []string{"domain_of_kind_00009"}, []string{"plain [domain_of_kind_00009]", "wide [domain_of_kind_00009]"}},
		{"two domains", "intent_of_kind_00008", []string{"domain_of_kind_00001", "domain_of_kind_19999"}, []string{"wide [domain_of_kind_00001 domain_of_kind_19999]"}},
		{"one domain and the wildcard", "intent_of_kind_00008", []string{"domain_of_kind_00001", "unknown"}, []string{"wide [domain_of_kind_00001 *]"}},
		{"another intent", "unknown", []string{"domain_of_kind_00001"}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := matcher.Query{Intent: tc.intent, Domains: tc.domains, Caller: everyone}
			got := []string{}
			for _, c := range describe(x, &q, nil) {
				got = append(got, fmt.Sprint(c.AgentID, " ", c.MatchedDomains))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuild_BoundsWeights(t *testing.T) {
	agents := []*contract.RegistryEntry{reviewer("a")}
	q := reviewQuery(everyone)
	for _, tc := range []struct {
		name    string
		weights matcher.Weights
		want    string
	}{
		{"negative", matcher.Weights{Intent: -1, Domain: -1, DomainMax: -1, Violation: -1}, "a 0.00 (0.00+0.00+0.00) [python] eligible=true"},
		{"huge", matcher.Weights{Intent: 1 << 40, Domain: 1 << 40, DomainMax: 1 << 40}, "a 200.00 (100.00+100.00+0.00) [python] eligible=true"},
		{"zero", matcher.Weights{}, "a 0.00 (0.00+0.00+0.00) [python] eligible=true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := scores(describe(matcher.Build(agents, tc.weights, 0), &q, nil))
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}
