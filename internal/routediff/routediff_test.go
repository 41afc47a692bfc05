package routediff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

func TestSide_ExplainsAgent(t *testing.T) {
	catalogue := &capabilities.Catalogue{Agents: []*contract.RegistryEntry{{ID: "rag_agent"}}}
	candidate := contract.Candidate{
		AgentID: "rag_agent", Score: 0.6, Parts: contract.ScoreParts{Intent: 0.5, Domains: 0.3, Constraints: -0.2}, Eligible: true, Role: contract.RoleStandby,
	}
	gated := candidate
	gated.Eligible, gated.Gates = false, []contract.Gate{{Gate: "threshold", Reason: "score 0.60 is below the threshold 0.65"}, {Gate: "tenant", Reason: "another tenant's"}}
	tests := []struct {
		name, id string
		d        contract.Decision
		want     string
	}{
		{"missing", "poet", contract.Decision{}, "it is not in that registry"},
		{"no candidate", "rag_agent", contract.Decision{}, "no candidate: what it declares scores below the match threshold"},
		{"behind another", "rag_agent", contract.Decision{Candidates: []contract.Candidate{candidate}}, "score 0.60 = intent 0.50 + domains 0.30 − constraints 0.20; eligible, behind another"},
		{
			"behind another by a rule", "rag_agent",
			contract.Decision{Candidates: []contract.Candidate{candidate}, TieBreak: &contract.TieBreak{Rule: "specificity", Over: "rag_agent"}},
			"score 0.60 = intent 0.50 + domains 0.30 − constraints 0.20; eligible, behind another by specificity",
		},
		{
			"kept out", "rag_agent",
			contract.Decision{Candidates: []contract.Candidate{gated}},
			"score 0.60 = intent 0.50 + domains 0.30 − constraints 0.20; score 0.60 is below the threshold 0.65; another tenant's",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&Side{Decision: &tt.d, Catalogue: catalogue}).explainAgent(tt.id); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestExplain_RefersToBothSides(t *testing.T) {
	chosen := contract.Candidate{
		AgentID: "reviewer", Score: 0.8, Parts: contract.ScoreParts{Intent: 0.5, Domains: 0.3}, Eligible: true, Role: contract.RoleChosen,
	}
	before := &Side{
		Label: "before", Outcome: "fallback_b", Reason: "no_match", Intent: "review", Domains: []string{"go"}, Confidence: 0.9,
		Decision: &contract.Decision{},
	}
	after := &Side{
		Label: "after", Outcome: "dispatch", Agents: []string{"reviewer"}, Intent: "review", Domains: []string{"go"}, Confidence: 0.9,
		Decision:  &contract.Decision{Candidates: []contract.Candidate{chosen}},
		Catalogue: &capabilities.Catalogue{Agents: []*contract.RegistryEntry{{ID: "reviewer"}}},
	}
	if diff := cmp.Diff([]string{"outcome", "agents"}, Compare(before, after)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	want := []string{
		"reviewer: chosen after (score 0.80 = intent 0.50 + domains 0.30), not before: " +
			"no candidate: it was not in the registry, or declared nothing that scored the match threshold",
		"outcome: fallback_b (no_match) before, dispatch after",
	}
	if diff := cmp.Diff(want, Explain(before, after)); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	before.Intent, before.Confidence = contract.Unknown, 0.5299
	before.Decision.Classification.RequiredConfidence = 0.5338
	if got, want := Explain(before, after)[0], "read as unknown (go) with confidence 0.5299, below the 0.5338 that the registry requires, before, as review (go) with confidence 0.90 after"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if what, why := Compare(after, after), Explain(after, after); what != nil || len(why) != 0 {
		t.Errorf("got %v and %v for equal sides, want nothing", what, why)
	}
}
