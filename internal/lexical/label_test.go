package lexical

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// labelCorpus has intents with examples, and one with only a name.
func labelCorpus() Corpus {
	return Corpus{
		Intents: []IntentDoc{
			{Name: "code_review", Agents: []string{"quality_agent"}, Examples: []string{"review my pull request", "check this function for bugs"}, Keywords: []string{"pylint"}},
			{Name: "costAnalysis", Agents: []string{"billing_agent"}, Examples: []string{"why did the cloud bill go up"}, Keywords: []string{"billing"}},
			{Name: "análise_de_risco", Agents: []string{"risk"}, Examples: []string{"quão arriscado é isto"}},
			{Name: "spark_job", Agents: []string{"spark"}, Examples: []string{"run the spark_job of tonight"}},
			{Name: "translate", Agents: []string{"words"}, Examples: []string{"how do you say this in French"}},
			{Name: "doc_answering", Agents: []string{"bare_agent"}},
		},
		Domains: []string{"python", "kb_internal", "cost_analysis"},
	}
}

// TestLabels_AreNotRequests checks that names spelled as identifiers are ignored next to other
// words.
func TestLabels_AreNotRequests(t *testing.T) {
	m := Train(labelCorpus())
	const weather, pull = "will it rain in Lisbon? ", "review my pull request "
	tests := []struct {
		name, text, intent string
		domains            string
	}{
		{"spelled as in the registry", weather + "code_review", contract.Unknown, ""},
		{"beside a request", pull + "costAnalysis", "code_review", "cost_analysis"},
		{"in capitals", weather + "CODE_REVIEW", contract.Unknown, ""},
		{"in the other spelling", weather + "codeReview CodeReview cost_analysis", contract.Unknown, "cost_analysis"},
		{"with other underscores", weather + "_code__review_", contract.Unknown, ""},
		{"inside a longer name", weather + "intent_code_review_v2 myCodeReview", contract.Unknown, ""},
		{"between marks", weather + "intent=code_review, [code_review] 'code_review'", contract.Unknown, ""},
		{"behind ideographs", weather + "意图为code_review的", contract.Unknown, ""},
		{"with accents", weather + "ANÁLISE_DE_RISCO", contract.Unknown, ""},
		{"agent next to its keyword", weather + "the city billing_agent", contract.Unknown, ""},
		{"in quoted code", weather + "`code_review`", contract.Unknown, ""},

		{"spelled as words", weather + "code review", "code_review", ""},
		{"with a hyphen", weather + "code-review", "code_review", ""},
		{"in one word", weather + "codereview", "code_review", ""},
		{"no label of this registry", weather + "review_code", "code_review", ""},
		{"name with one word", weather + "translate", "translate", ""},
		{"intent without examples", weather + "doc_answering", "doc_answering", ""},
		{"agent of an intent without examples", weather + "bare_agent_doc_answering", "doc_answering", ""},
		{"spelled as in an example", "when does spark_job run", "spark_job", ""},
		{"a domain", pull + "in kb_internal", "code_review", "kb_internal"},
		{"by itself", "code_review", "code_review", ""},
		{"by itself but for a domain", "please: code_review (python)", "code_review", "python"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := m.Classify(tt.text)
			got := []string{p.Intent, strings.Join(p.Domains, " ")}
			if diff := cmp.Diff([]string{tt.intent, tt.domains}, got); diff != "" {
				t.Errorf("%q: intent and domains (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// labelModels returns a model with rules and a statistical one, each with a request and with the
// label of another intent.
func labelModels() []struct {
	name           string
	m              *Model
	request, label string
} {
	return []struct {
		name           string
		m              *Model
		request, label string
	}{
		{"rules", Train(labelCorpus()), "why did the zebra cloud bill go up", "code_review"},
		{"learned", Train(trainedCorpus()), "please pay the zebra invoice", "fix_printer"},
	}
}

// TestLabels_WholeText checks that a prediction reports whether it is based on a label only.
func TestLabels_WholeText(t *testing.T) {
	for _, k := range labelModels() {
		for text, want := range map[string]bool{
			k.label:                               true,
			"(" + strings.ToUpper(k.label):        true,
			k.label + " " + k.label:               true,
			k.request:                             false,
			k.request + " " + k.label:             false,
			strings.Replace(k.label, "_", " ", 1): false,
			"":                                    false,
		} {
			p := k.m.Classify(text)
			if p.LabelOnly != want {
				t.Errorf("%s, %q: got label only %v, want %v", k.name, text, p.LabelOnly, want)
			}
			if known := p.Intent != contract.Unknown; known != (text != "") {
				t.Errorf("%s, %q: got intent %s", k.name, text, p.Intent)
			}
		}
	}
}

// TestLabels_NextToRequest checks that labels, objects and comments change neither the prediction,
// except for its report of them, nor its explanation.
func TestLabels_NextToRequest(t *testing.T) {
	for _, k := range labelModels() {
		for _, beside := range []string{
			k.label, strings.ToUpper(k.label) + "_v2",
			`{"intent":"` + k.label + `","domains":["python"]}`, `{"a":{"b":"translate this, and order lunch`,
			"<!-- translate: order lunch; and fix the printer -->", "```\nfix the printer\n```",
		} {
			text := k.request + "\n" + beside
			ignoreLabelled := cmpopts.IgnoreFields(Prediction{}, "Labelled")
			if diff := cmp.Diff(k.m.Classify(k.request), k.m.Classify(text), ignoreLabelled); diff != "" {
				t.Errorf("%s, %q: prediction (-alone +beside):\n%s", k.name, text, diff)
			}
			if diff := cmp.Diff(k.m.Explain(k.request), k.m.Explain(text)); diff != "" {
				t.Errorf("%s, %q: explanation (-alone +beside):\n%s", k.name, text, diff)
			}
		}
	}
}

// TestExplain_LabelOnly checks that the words of a label are the features if the label is the whole
// text.
func TestExplain_LabelOnly(t *testing.T) {
	for _, k := range labelModels() {
		e := k.m.Explain(k.label)
		if token.NormalizeLabel(e.Intent) != k.label || len(e.Features) == 0 {
			t.Errorf("%s, %q: got %+v, want its words as reasons", k.name, k.label, e)
		}
	}
}

// TestGatherEvidence_Labels checks that a label counts as evidence.
func TestGatherEvidence_Labels(t *testing.T) {
	e := Train(labelCorpus()).GatherEvidence("tell me a joke about billing_agent")
	if len(e.Intents) == 0 || e.Intents[0] != (contract.IntentScore{Intent: "costAnalysis", Confidence: MinActionConfidence}) {
		t.Errorf("got %v, want costAnalysis first", e.Intents)
	}
}
