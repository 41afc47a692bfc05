package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

func TestLearning_ReportsWeakAndConfusedIntents(t *testing.T) {
	l := &Learning{
		Languages: []LanguageCount{{"en", 20}, {unknownLanguage, 1}},
		Report: lexical.Report{
			Examples: 21, Trials: 21, Accuracy: 0.7619, AgentAccuracy: 0.9524,
			Intents: []lexical.IntentReport{
				{Intent: "cancel_order", Examples: 10, Trials: 10, Accuracy: 0.6},
				{Intent: "pay", Examples: 1, Trials: 1},
				{Intent: "track_order", Examples: 10, Trials: 10, Accuracy: 0.9},
			},
			Confusions: []lexical.Confusion{
				{Intent: "cancel_order", Got: "track_order", Count: 4}, {Intent: "pay", Got: "track_order", Count: 1}, {Intent: "track_order", Got: "pay", Count: 1},
			},
		},
	}
	want := "21 examples (20 en, 1 of unknown language); expected accuracy 0.95 by agent and 0.76 by intent of requests worded like the 21 held-out examples, whatever the confidence; weakest cancel_order 0.60; " +
		"confused cancel_order as track_order (4), pay as track_order (1), track_order as pay (1)"
	if got := l.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	catalogue := &capabilities.Catalogue{Agents: []*contract.RegistryEntry{
		{ID: "orders", Match: contract.Match{Intent: []string{"cancel_order", "track_order"}}}, {ID: "payments", Match: contract.Match{Intent: []string{"pay"}}},
	}}
	wantFindings := []capabilities.Finding{{
		Rule: RuleConfusedIntents, Severity: capabilities.SeverityInfo, Agents: []string{"orders"},
		Message: "4 of 10 held-out examples of cancel_order are taken for track_order: let their examples differ in more words, or add more of them",
	}}
	if diff := cmp.Diff(wantFindings, l.findConfusions(catalogue)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	for accuracy, advised := range map[float64]bool{0.69: true, 0.7: false} {
		l.Accuracy = accuracy
		if got := l.Advice(); (got != "") != advised {
			t.Errorf("accuracy %v: got the advice %q, want some: %v", accuracy, got, advised)
		}
	}
	if got := (&Learning{}).Advice(); got != "" {
		t.Errorf("got the advice %q without held-out examples, want none", got)
	}
	for trials, want := range map[int]string{
		4:  "no expected accuracy: it needs 10 examples that can be held out, and there are 4",
		25: "each of the 25 held-out examples is predicted by a model that was trained without it and its variants, and counts for 0.04: an unusual one, such as teach adds, lowers the accuracy until there are more like it. Requests in other words reach their agent less often, so it is an upper estimate: golden cases measure requests",
	} {
		l.Trials = trials
		if got := l.ExplainAccuracy(); got != want {
			t.Errorf("%d trials: got %q, want %q", trials, got, want)
		}
	}
	if got := (&Learning{}).ExplainAccuracy(); got != "" {
		t.Errorf("got %q without examples, want nothing", got)
	}
	if got := (&Learning{}).String(); got != "no examples" {
		t.Errorf("got %q, want no examples", got)
	}
}
