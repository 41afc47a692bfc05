package lexical_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/lexical"
)

// TestTrain_MergesIntents checks that the data of several agents for one intent are merged.
func TestTrain_MergesIntents(t *testing.T) {
	apart := lexical.Train(lexical.Corpus{Intents: []lexical.IntentDoc{
		{Name: "b_intent", Examples: []string{"fly the kite"}, Keywords: []string{"string"}},
		{Name: "a_intent", Examples: []string{"sail the boat"}},
		{Name: "b_intent", Examples: []string{"wind the rope", "fly the kite"}},
	}})
	for text, want := range map[string]string{
		"please fly my kite":   "b_intent",
		"wind up the rope":     "b_intent",
		"the string of a rope": "b_intent", // keyword of one intent, example of the other
		"sail a boat":          "a_intent",
	} {
		if got := apart.Classify(text); got.Intent != want || got.Confidence < 0.9 {
			t.Errorf("%s: got %s with %v, want %s, sure", text, got.Intent, got.Confidence, want)
		}
	}
}

// TestTrain_DoesNotModifyCorpus checks that training does not modify the
// corpus.
func TestTrain_DoesNotModifyCorpus(t *testing.T) {
	c := richCorpus()
	lexical.Train(c)
	if diff := cmp.Diff(richCorpus(), c); diff != "" {
		t.Errorf("corpus after training (-want +got):\n%s", diff)
	}
}

func TestNearestExamples(t *testing.T) {
	m := lexical.Train(richCorpus())
	all := func(string, string) bool { return true }
	tests := []struct {
		name  string
		text  string
		limit int
		keep  func(intent, example string) bool
		want  []string
	}{
		{"best first", "review this spark request", 5, all, []string{"review my pull request", "look over my spark job"}},
		{"limited", "review this spark request", 1, all, []string{"review my pull request"}},
		{"none asked for", "review this spark request", 0, all, nil},
		{"refused", "review this spark request", 5, func(intent, _ string) bool { return intent == "code_review" }, []string{"review my pull request"}},
		{"nothing near", "the weather in Lisbon", 5, all, nil},
		{"names are no examples", "serverless", 5, all, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, m.NearestExamples(tt.text, tt.limit, tt.keep)); diff != "" {
				t.Errorf("nearest (-want +got):\n%s", diff)
			}
		})
	}
}
