package lexical_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/lexical"
)

// TestClassify_NotForLowersConfidence compares requests that differ in one word, which
// only not_for contains.
func TestClassify_NotForLowersConfidence(t *testing.T) {
	corpus := lexical.Corpus{Intents: []lexical.IntentDoc{
		{
			Name: "code_review", Agents: []string{"quality"}, NotFor: []string{"running the code"},
			Examples: []string{"review this python code", "find bugs in this python script", "check this script for errors"},
		},
		{Name: "cost_report", Agents: []string{"billing"}, Examples: []string{"how much did we spend", "show the costs of last month"}},
	}}
	m := lexical.Train(corpus)
	without, with := m.Classify("check this python script"), m.Classify("run this python script")
	if with.BestIntent != "code_review" || with.Confidence > 0.5 || without.Confidence < with.Confidence+0.2 {
		t.Errorf("got %s with confidence %v, and %v without the word of not_for, want at most 0.5 and clearly more",
			with.BestIntent, with.Confidence, without.Confidence)
	}
	// A word that also occurs in an example does not count against the intent.
	corpus.Intents[0].Examples = append(corpus.Intents[0].Examples, "does this python script run without errors")
	if got := lexical.Train(corpus).Classify("does this script run"); got.Intent != "code_review" || got.Confidence < 0.5 {
		t.Errorf("a word of an example too: got %s with confidence %v, want code_review", got.Intent, got.Confidence)
	}
}
