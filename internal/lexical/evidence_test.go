package lexical_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// TestEvidence checks evidence, also for intents that a prediction rejects.
func TestGatherEvidence(t *testing.T) {
	m := lexical.Train(lexical.Corpus{
		Intents: []lexical.IntentDoc{
			{Name: "code_review", Examples: []string{"look at my pull request"}, Keywords: []string{"pylint"}},
			{Name: "cost_analysis", Examples: []string{"why did the cloud bill go up"}},
			{Name: "poem", Examples: []string{"verses about the sea"}},
			{Name: "plan_review"},
		},
		Domains: []string{"python", "azure"},
	})
	tests := []struct {
		name, text string
		intents    string // names, best first
		domains    string
		sure       bool // the best has a confidence of at least 0.9
	}{
		{"whole name", "code review in python", "code_review plan_review", "python", true},
		{"two whole names", "a poem and a code review", "code_review poem plan_review", "", true},
		{"half of names", "a review", "code_review plan_review", "", false},
		{"one word of an example", "the bill", "cost_analysis", "", false},
		{"keyword only", "pylint", "code_review", "", true},
		{"only a domain", "azure", "", "azure", false},
		{"nothing", "tell me a joke", "", "", false},
		{"only stop words", "what about it", "", "", false},
		{"empty", "", "", "", false},
		{"placeholders", "[POEM_1] [CODE_2] [AZURE_3]", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := m.GatherEvidence(tt.text)
			var names []string
			for _, i := range e.Intents {
				names = append(names, i.Intent)
			}
			got := []string{strings.Join(names, " "), strings.Join(e.Domains, " ")}
			if diff := cmp.Diff([]string{tt.intents, tt.domains}, got); diff != "" {
				t.Errorf("intents and domains (-want +got):\n%s", diff)
			}
			if sure := len(e.Intents) > 0 && e.Intents[0].Confidence >= 0.9; sure != tt.sure {
				t.Errorf("got %+v, want a sure one: %v", e.Intents, tt.sure)
			}
		})
	}
}

// TestGatherEvidence_IncludesPrediction checks that evidence includes the prediction, is ordered,
// bounded and deterministic.
func TestGatherEvidence_IncludesPrediction(t *testing.T) {
	m := lexical.Train(richCorpus())
	word := rapid.SampledFrom([]string{"review", "code", "pull", "request", "cost", "cloud", "bill", "invoice", "azure", "the", "revise", "审查代码", "[EMAIL_1]", "x"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 0, 10).Draw(t, "text"), " ")
		p, e := m.Classify(text), m.GatherEvidence(text)
		if diff := cmp.Diff(e, m.GatherEvidence(text)); diff != "" {
			t.Errorf("%q: got two evidences (-first +second):\n%s", text, diff)
		}
		found := map[string]float64{}
		last := 1.0
		for _, i := range e.Intents {
			if i.Confidence <= 0 || i.Confidence > last {
				t.Errorf("%q: got %+v, want scores falling from 1, above 0", text, e.Intents)
			}
			found[i.Intent], last = i.Confidence, i.Confidence
		}
		if p.Intent != contract.Unknown && found[p.Intent] < p.Confidence {
			t.Errorf("%q: got %v for %s, want at least the %v that is claimed", text, found[p.Intent], p.Intent, p.Confidence)
		}
		if diff := cmp.Diff(p.Domains, e.Domains); diff != "" {
			t.Errorf("%q: domains (-prediction +evidence):\n%s", text, diff)
		}
	})
}

// TestTokenizer_SkipsPlaceholders checks that placeholders in any position do not change the
// result.
func TestTokenizer_SkipsPlaceholders(t *testing.T) {
	m := lexical.Train(lexical.Corpus{
		Intents: []lexical.IntentDoc{
			{Name: "email_check", Examples: []string{"is this e-mail secret 1"}, Keywords: []string{"iban"}},
			{Name: "code_review"},
		},
		Domains: []string{"phone", "card", "ip"},
	})
	for _, text := range []string{"", "code review", "tell me a joke", "审查代码", "code review of the phone"} {
		want := m.Classify(text)
		for _, masked := range []string{
			text + " [EMAIL_1]", "[PHONE_12] " + text, "[CARD_3]" + text + "[IP_4]", text + " ([IBAN_1], [SECRET_20]) [EMAIL_999999999999]",
		} {
			if diff := cmp.Diff(want, m.Classify(masked)); diff != "" {
				t.Errorf("%q (-without +with placeholders):\n%s", masked, diff)
			}
		}
	}
	for _, text := range []string{"[email_1]", "[EMAIL]", "EMAIL_1", "[EMAIL_1", "[EMAIL 1]"} {
		if got := m.Classify(text); got.Confidence == 0 {
			t.Errorf("%q: got nothing, want a word: it is no placeholder", text)
		}
	}
}

// TestGatherEvidence_StatisticalModel checks that the statistical prediction counts as evidence,
// without a word of the name.
func TestGatherEvidence_StatisticalModel(t *testing.T) {
	var c lexical.Corpus
	for intent, things := range map[string][]string{
		"play": {"song", "album", "tune", "track"}, "cook": {"soup", "cake", "bread", "stew"}, "ride": {"bike", "horse", "tram", "bus"},
	} {
		d := lexical.IntentDoc{Name: intent}
		for _, thing := range things {
			for _, how := range []string{"how about a ", "give me the ", "one more ", "the other ", "my brother's ", "a nice ", "no other ", "such a ", "every "} {
				d.Examples = append(d.Examples, how+thing)
			}
		}
		c.Intents = append(c.Intents, d)
	}
	m := lexical.Train(c)
	for text, want := range map[string]string{"songs and albums": "play", "bakery: breads": "cook", "horses": "ride"} {
		p, e := m.Classify(text), m.GatherEvidence(text)
		if len(e.Intents) == 0 || e.Intents[0].Intent != want || e.Intents[0].Confidence < p.Confidence {
			t.Errorf("%q: got evidence %v beside %s with %v, want %s first", text, e.Intents, p.BestIntent, p.Confidence, want)
		}
	}
}
