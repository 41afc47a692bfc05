package lexical_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/lexical"
)

// TestClassify_ReadsMisspeltWords misspells words of at least five letters by one edit: a
// transposition, a deletion, an insertion or a substitution.
func TestClassify_ReadsMisspeltWords(t *testing.T) {
	m := lexical.Train(lexical.Corpus{Intents: []lexical.IntentDoc{
		{Name: "return_shoes", Agents: []string{"shop"}, Examples: []string{"I want to return my shoes", "send the shoes back"}},
		{Name: "reset_password", Agents: []string{"helpdesk"}, Examples: []string{"I forgot my password", "reset the password of my account"}},
		{Name: "track_order", Agents: []string{"orders"}, Examples: []string{"where is my order", "track the order of last week"}},
	}})
	for text, want := range map[string]string{
		"return my shose":           "return_shoes",
		"reset my pasword":          "reset_password",
		"reset the passwordd":       "reset_password",
		"track my ordr":             "track_order",
		"I forgot my pazsword":      "reset_password",
		"i want to retrun my shoes": "return_shoes",
	} {
		if got := m.Classify(text); got.Intent != want || got.Confidence < lexical.MinActionConfidence {
			t.Errorf("%q: got %s with confidence %v, want %s", text, got.Intent, got.Confidence, want)
		}
	}
	if got := m.Classify("bake a rodent cake"); got.Confidence >= lexical.MinActionConfidence {
		t.Errorf("words two edits away: got %s with confidence %v, want no sure intent", got.Intent, got.Confidence)
	}
}
