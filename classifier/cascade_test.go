package classifier_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/llm"
)

// TestCascade_IsReported checks that the decision contains the lexical result,
// the threshold and whether the model agreed.
func TestCascade_IsReported(t *testing.T) {
	const sure, unsure = "Please do a code review of this python module", "databricks"
	number := func(f float64) *float64 { return &f }
	yes, no := true, false
	tests := []struct {
		name, prompt string
		cfg          classifier.Config
		model        script
		want         *contract.Cascade
	}{
		{"spared", sure, classifier.Config{Accept: 0.9}, replyTexts(goodReply), &contract.Cascade{Intent: "code_review", Accept: number(0.9), ModelSkipped: true}},
		{"model agrees", sure, classifier.Config{}, replyTexts(goodReply), &contract.Cascade{Intent: "code_review", Agrees: &yes}},
		{
			"model disagrees", sure,
			classifier.Config{},
			replyTexts(`{"intent":"cost_analysis","domains":["azure"],"subtasks":[],"confidence":0.9}`),
			&contract.Cascade{Intent: "code_review", Agrees: &no},
		},
		{"model fails", sure, classifier.Config{}, failWith(&llm.Error{Reason: llm.ReasonUnavailable}), &contract.Cascade{Intent: "code_review"}},
		{"not calibrated", sure, classifier.Config{AcceptAuto: true}, replyTexts(goodReply), &contract.Cascade{Intent: "code_review", Agrees: &yes}},
		{"unsure", unsure, classifier.Config{Accept: 0.9}, replyTexts(goodReply), &contract.Cascade{Intent: contract.Unknown, Accept: number(0.9), Agrees: &no}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &fakeModel{do: tt.model}
			tt.cfg.Mode, tt.cfg.Model = classifier.ModeCascade, m
			got := open(t, tt.cfg).Classify(t.Context(), input(sourceRegistry(), tt.prompt))
			if confidence := got.Cascade.Confidence; (confidence >= 0.9) != (tt.prompt == sure) {
				t.Errorf("got confidence %v, want at least 0.9 for the first prompt only", confidence)
			}
			got.Cascade.Confidence = 0
			if diff := cmp.Diff(tt.want, got.Cascade); diff != "" {
				t.Errorf("cascade (-want +got):\n%s", diff)
			}
			if asked := m.calls() > 0; asked == tt.want.ModelSkipped {
				t.Errorf("got model called %t, want %t", asked, !tt.want.ModelSkipped)
			}
		})
	}
}

// TestCascade_LeavesFollowUpsToModel: the model receives the conversation.
func TestCascade_LeavesFollowUpsToModel(t *testing.T) {
	m := &fakeModel{do: replyTexts(`{"intent":"clean_room","domains":["housekeeping"],"subtasks":[],"confidence":0.9}`)}
	registry := portRegistry(t)
	in := inSession(t, registry, lexical.Train(classifier.BuildCorpus(registry)), "cancel order 77120", "and 88213?")
	got := open(t, classifier.Config{Mode: classifier.ModeCascade, Model: m, Accept: 0.5}).Classify(t.Context(), in)
	if got.Source != contract.SourceLLM || got.Intent != "clean_room" || got.Cascade.Intent != "cancel_order" {
		t.Errorf("got %s, cascade %+v, want the intent of the model", render(&got), got.Cascade)
	}

	m = &fakeModel{do: failWith(&llm.Error{Reason: llm.ReasonUnavailable})}
	got = open(t, classifier.Config{Mode: classifier.ModeLLM, Model: m}).Classify(t.Context(), in)
	if got.Source != contract.SourceLexical || got.Intent != "cancel_order" || got.Reason != llm.ReasonUnavailable {
		t.Errorf("got %s, want the follow-up if the model fails", render(&got))
	}
	if list := classifier.ListEvidence(&in, &got); len(list) != 1 || list[0].Kind != contract.EvidenceFollowUp {
		t.Errorf("got evidence %+v, want the follow-up", list)
	}
}

// TestCascade_AbsentInOtherModes checks that other modes have no cascade data.
func TestCascade_AbsentInOtherModes(t *testing.T) {
	for _, mode := range []string{classifier.ModeLLM, classifier.ModeLexical} {
		got := open(t, classifier.Config{Mode: mode, Model: &fakeModel{do: replyTexts(goodReply)}}).Classify(t.Context(), input(sourceRegistry(), "review this python code"))
		if got.Cascade != nil {
			t.Errorf("mode %s: got cascade %+v, want none", mode, got.Cascade)
		}
	}
}

// TestCascade_AcceptAuto checks that a calibrated model provides the threshold,
// and that requests similar to the examples skip the model.
func TestCascade_AcceptAuto(t *testing.T) {
	s := calibratedRegistry()
	m := &fakeModel{do: replyTexts(`{"intent":"order_pizza","domains":["food"],"subtasks":[],"confidence":0.9}`)}
	c := open(t, classifier.Config{Mode: classifier.ModeCascade, Model: m, AcceptAuto: true})
	spared := c.Classify(t.Context(), input(s, "book me a flight to rome on tuesday"))
	if k := spared.Cascade; k == nil || k.Accept == nil || !k.ModelSkipped || m.calls() != 0 {
		t.Errorf("got cascade %+v after %d calls, want the model skipped by the calibrated threshold", k, m.calls())
	}
	asked := c.Classify(t.Context(), input(s, "zzz qqq xxx"))
	if k := asked.Cascade; k == nil || k.Accept == nil || k.ModelSkipped || m.calls() != 1 {
		t.Errorf("got cascade %+v after %d calls, want one call of the model", k, m.calls())
	}
}

// calibratedRegistry has three intents with many examples each.
func calibratedRegistry() *capabilities.Catalogue {
	var flights, pizzas, songs []string
	for _, what := range []string{"rome", "lisbon", "berlin", "madrid", "paris", "vienna", "oslo", "athens"} {
		for _, when := range []string{"monday", "tuesday", "friday", "sunday", "next week"} {
			flights = append(flights, fmt.Sprintf("book a flight to %s on %s", what, when))
			pizzas = append(pizzas, fmt.Sprintf("order a pizza with %s cheese for %s", what, when))
			songs = append(songs, fmt.Sprintf("play a song about %s that came out %s", what, when))
		}
	}
	agent := func(id, intent, domain string, examples []string) *contract.RegistryEntry {
		return &contract.RegistryEntry{
			ID: id, Match: contract.Match{Intent: []string{intent}, Domains: []string{domain}}, Examples: map[string][]string{intent: examples},
		}
	}
	return snapshot(
		agent("travel", "book_flight", "travel", flights),
		agent("kitchen", "order_pizza", "food", pizzas),
		agent("music", "play_song", "media", songs),
	)
}
