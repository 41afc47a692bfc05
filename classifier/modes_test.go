package classifier_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
)

func TestNew(t *testing.T) {
	const needsModel = ` needs a model: configure one under llm, or use "auto" or "lexical"`
	tests := []struct {
		name string
		cfg  classifier.Config
		mode string
		why  string
		err  string
	}{
		{"zero", classifier.Config{}, "lexical", "classifier.mode is auto, and no model is configured", ""},
		{"auto", classifier.Config{Mode: "auto"}, "lexical", "classifier.mode is auto, and no model is configured", ""},
		{"auto with a model", classifier.Config{Mode: "auto", Model: &fakeModel{}}, "llm", "classifier.mode is auto, and a model is configured", ""},
		{"lexical", classifier.Config{Mode: "lexical"}, "lexical", "classifier.mode is lexical", ""},
		{"lexical with a model", classifier.Config{Mode: "lexical", Model: &fakeModel{}}, "lexical", "classifier.mode is lexical", ""},
		{"llm", classifier.Config{Mode: "llm", Model: &fakeModel{}}, "llm", "classifier.mode is llm", ""},
		{"llm without a model", classifier.Config{Mode: "llm"}, "", "", `mode "llm"` + needsModel},
		{
			"cascade",
			classifier.Config{Mode: "cascade", Model: &fakeModel{}, Accept: 0.85},
			"cascade",
			"classifier.mode is cascade, and a lexical classification is accepted from a confidence of 0.85", "",
		},
		{
			"cascade without a threshold",
			classifier.Config{Mode: "cascade", Model: &fakeModel{}},
			"cascade",
			"classifier.mode is cascade, and no lexical classification is sure enough for it", "",
		},
		{
			"cascade that never accepts",
			classifier.Config{Mode: "cascade", Model: &fakeModel{}, Accept: 2},
			"cascade",
			"classifier.mode is cascade, and no lexical classification is sure enough for it", "",
		},
		{"cascade without a model", classifier.Config{Mode: "cascade"}, "", "", `mode "cascade"` + needsModel},
		{"another case", classifier.Config{Mode: "Lexical"}, "", "", `mode "Lexical" is not known: use "auto", "llm", "cascade" or "lexical"`},
		{"timeout", classifier.Config{Timeout: -1}, "", "", "the timeout must not be negative"},
		{"tokens", classifier.Config{MaxOutputTokens: -1}, "", "", "the number of output tokens must not be negative"},
		{"shortlist", classifier.Config{ShortlistK: -1}, "", "", "the sizes of the shortlist must not be negative"},
		{"cache", classifier.Config{Cache: classifier.CacheConfig{TTL: -time.Second}}, "", "", "the size and the age of the cache must not be negative"},
		{"negative threshold", classifier.Config{Accept: -0.1}, "", "", "the confidence to accept must be a number from 0 up"},
		{"threshold NaN", classifier.Config{Accept: math.NaN()}, "", "", "the confidence to accept must be a number from 0 up"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := classifier.New(tt.cfg)
			if err != nil {
				if err.Error() != tt.err || c != nil {
					t.Fatalf("got classifier %v, error %q; want error %q", c, err, tt.err)
				}
				return
			}
			defer c.Close()
			if tt.err != "" {
				t.Fatalf("got no error, want %q", tt.err)
			}
			mode, why := c.Mode()
			if diff := cmp.Diff([]string{tt.mode, tt.why}, []string{mode, why}); diff != "" {
				t.Errorf("mode and why (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCascade checks when the model is called.
func TestCascade(t *testing.T) {
	const sure, half, foreign = "review this python code", "have a look at this code", "tell me a joke"
	tests := []struct {
		name   string
		accept float64
		prompt string
		source contract.Source
		calls  int
	}{
		{"confidence above the threshold", 0.8, sure, contract.SourceLexical, 0},
		{"confidence below the threshold", 1, sure, contract.SourceLLM, 1},
		{"ambiguous, high threshold", 0.97, half, contract.SourceLLM, 1},
		{"ambiguous, low threshold", 0.5, half, contract.SourceLexical, 0},
		{"unknown intent", 0.01, foreign, contract.SourceLLM, 1},
		{"threshold above 1", 1.1, sure, contract.SourceLLM, 1},
		{"no threshold", 0, sure, contract.SourceLLM, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &fakeModel{do: replyTexts(goodReply)}
			c := open(t, classifier.Config{Mode: classifier.ModeCascade, Model: m, Accept: tt.accept})
			clf := c.Classify(t.Context(), input(sourceRegistry(), tt.prompt))
			if clf.Source != tt.source || m.calls() != tt.calls {
				t.Errorf("got %s after %d calls, want %s after %d", clf.Source, m.calls(), tt.source, tt.calls)
			}
			if (clf.ModelUse != nil) != (tt.calls > 0) || clf.Reason != "" {
				t.Errorf("got use %v, reason %q; want a use only if the model was called, and no reason", clf.ModelUse, clf.Reason)
			}
		})
	}
}

// TestCascade_ChecksCacheFirst checks that the cache precedes the lexical stage, so that a prompt
// keeps its classification.
func TestCascade_ChecksCacheFirst(t *testing.T) {
	m := &fakeModel{do: replyTexts(goodReply)}
	c := open(t, classifier.Config{Mode: classifier.ModeCascade, Model: m, Accept: 0.999, Cache: classifier.CacheConfig{Entries: 10}})
	in := input(sourceRegistry(), "have a look at this code")
	for _, want := range []contract.Source{contract.SourceLLM, contract.SourceCache, contract.SourceCache} {
		if got := c.Classify(t.Context(), in).Source; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestClassify_WithoutModelCall checks modes and inputs without a model call.
func TestClassify_WithoutModelCall(t *testing.T) {
	full := input(sourceRegistry(), "review this python code")
	tests := []struct {
		name   string
		mode   string
		in     classifier.Input
		reason string
	}{
		{"lexical", classifier.ModeLexical, full, ""},
		{"llm, no agents", classifier.ModeLLM, input(snapshot(), full.Prompt), classifier.ReasonEmptyRegistry},
		{"llm, no registry", classifier.ModeLLM, classifier.Input{Prompt: full.Prompt}, classifier.ReasonEmptyRegistry},
		{"cascade, no agents", classifier.ModeCascade, input(snapshot(), full.Prompt), classifier.ReasonEmptyRegistry},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &fakeModel{do: replyTexts(goodReply)}
			clf := open(t, classifier.Config{Mode: tt.mode, Model: m}).Classify(t.Context(), tt.in)
			if m.calls() != 0 || clf.ModelUse != nil || clf.Source != contract.SourceLexical || clf.Reason != tt.reason {
				t.Errorf("got %d calls, use %v, source %s, reason %q; want none, nil, lexical, %q", m.calls(), clf.ModelUse, clf.Source, clf.Reason, tt.reason)
			}
		})
	}
}

// TestClassify_WithoutLexicalModel checks a registry whose lexical model is not trained yet.
func TestClassify_WithoutLexicalModel(t *testing.T) {
	in := classifier.Input{Prompt: "review this", Catalogue: manyAgents(30)}
	reply := `{"intent":"do_aaa","domains":["domaaa"],"subtasks":[],"confidence":1}`
	clf := open(t, classifier.Config{Model: &fakeModel{do: replyTexts(reply)}}).Classify(t.Context(), in)
	if clf.Source != contract.SourceLLM || clf.Intent != "do_aaa" {
		t.Errorf("got %s from %s, want do_aaa from llm", clf.Intent, clf.Source)
	}
}
