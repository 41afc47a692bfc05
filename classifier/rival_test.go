package classifier_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// hospital is a registry with keywords of two agents. Each intent of the laboratory has the
// examples.
func hospital(t *testing.T, examples ...string) *capabilities.Catalogue {
	t.Helper()
	var registry strings.Builder
	registry.WriteString(`clients:
  appointments:
    match: { intent: [book_appointment], domains: [appointments] }
    keywords: [appointment]
    endpoint: { protocol: http, url: "http://127.0.0.1:1/" }
  lab_results:
    match: { intent: [get_lab_results], domains: [laboratory] }
    keywords: [blood test]
    endpoint: { protocol: http, url: "http://127.0.0.1:2/" }
`)
	if len(examples) > 0 {
		registry.WriteString("    examples:\n      get_lab_results:\n")
		for _, e := range examples {
			fmt.Fprintf(&registry, "        - %q\n", e)
		}
	}
	s, err := capabilities.Parse("hospital.yaml", []byte(registry.String()))
	if err != nil {
		t.Fatal(err)
	}
	return s.Catalogue
}

// Keywords of two agents are a question, unless examples decide between them.
func TestClassify_KeywordsOfTwoAgents(t *testing.T) {
	several := []string{
		"show my blood test", "is the blood test ready", "results of the blood test", "blood test of last week",
		"send me the blood test", "where is my blood test", "explain the blood test", "print my blood test",
	}
	for name, tc := range map[string]struct {
		examples []string
		prompt   string
		asked    bool
	}{
		"keywords of two agents":  {nil, "blood test appointment for my son", true},
		"one example":             {several[:1], "blood test appointment for my son", true},
		"a similar example":       {[]string{"blood test appointment for my father"}, "blood test appointment for my son", false},
		"several examples":        {several, "blood test appointment for my son", false},
		"keyword of one agent":    {nil, "blood test of my son", false},
		"word of the name":        {several[:1], "get the blood test of my appointment", false},
		"requests with a keyword": {nil, "I need an appointment. Is my blood test ready?", false},
	} {
		t.Run(name, func(t *testing.T) {
			clf := newClassifier(t).Classify(t.Context(), input(hospital(t, tc.examples...), tc.prompt))
			asked := len(clf.Subtasks) == 0 && len(clf.Alternatives) > 0 && clf.Alternatives[0].Confidence == clf.Confidence
			if asked != tc.asked {
				t.Fatalf("asked %v, want %v: %s %v", asked, tc.asked, render(&clf), clf.Alternatives)
			}
			if !asked {
				return
			}
			if diff := cmp.Diff([]string{"book_appointment", "get_lab_results"}, sortedIntents(&clf)); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
		})
	}
}

func sortedIntents(clf *contract.Classification) []string {
	first, second := clf.Intent, clf.Alternatives[0].Intent
	return []string{min(first, second), max(first, second)}
}

// A request that asks not to do something is no request for it, and does not hide another one.
func TestSplit_NegatedRequest(t *testing.T) {
	for prompt, want := range map[string]string{
		"Review my pull request and don't analyse the cost":    "code_review",
		"Review my pull request. Do not analyse the cost.":     "code_review",
		"Analyse the cost, and please do not review my code":   "cost_analysis",
		"Don't review my pull request and do not analyse cost": contract.Unknown,
	} {
		clf := newClassifier(t).Classify(t.Context(), input(exampleRegistry(), prompt))
		got := clf.Intent
		for _, sub := range clf.Subtasks {
			if sub.Intent != contract.Unknown && sub.Intent != got {
				got += " " + sub.Intent
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s: %s", prompt, got, want, render(&clf))
		}
	}
}
