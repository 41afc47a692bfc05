package lexical_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/lexical"
)

func TestListEvidence(t *testing.T) {
	m := lexical.Train(lexical.Corpus{Intents: []lexical.IntentDoc{
		{Name: "code_review", Examples: []string{"look at my pull request"}, Keywords: []string{"code smell"}},
		{Name: "plan_review", Examples: []string{"check the schedule of this release"}},
	}})
	const text = "review the pull request"
	everything := func(string) bool { return true }
	got := m.ListEvidence(text, 10, everything)
	for i := range got {
		if got[i].Strength <= 0 || got[i].Strength >= 1 {
			t.Errorf("%+v: want a strength between 0 and 1", got[i])
		}
		got[i].Strength = 0
	}
	want := []lexical.EvidenceItem{
		{Kind: lexical.EvidenceExample, Text: "look at my pull request", Intent: "code_review", Missing: []string{"look"}},
		{Kind: lexical.EvidenceName, Text: "code_review", Intent: "code_review", Missing: []string{"code"}},
		{Kind: lexical.EvidenceName, Text: "plan_review", Intent: "plan_review", Missing: []string{"plan"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q (-want +got):\n%s", text, diff)
	}
	if got := m.ListEvidence(text, 1, func(intent string) bool { return intent == "plan_review" }); len(got) != 1 || got[0].Intent != "plan_review" {
		t.Errorf("got %+v, want one item of plan_review", got)
	}
	if got := m.ListEvidence("a smell of code", 1, everything); len(got) != 1 || got[0].Strength != 1 || got[0].Missing != nil {
		t.Errorf("got %+v, want the whole keyword", got)
	}
	typo := m.ListEvidence("revew the plan", 10, func(intent string) bool { return intent == "plan_review" })
	want = []lexical.EvidenceItem{
		{Kind: lexical.EvidenceTypo, Text: "review", Intent: "plan_review", Strength: 0.8333, RequestText: "revew"},
		{Kind: lexical.EvidenceName, Text: "plan_review", Intent: "plan_review", Strength: 0.6131, Missing: []string{"review"}},
	}
	if diff := cmp.Diff(want, typo); diff != "" {
		t.Errorf("a typo (-want +got):\n%s", diff)
	}
	if got := m.ListEvidence("zebra", 10, everything); got != nil {
		t.Errorf("got %+v, want none", got)
	}
}
