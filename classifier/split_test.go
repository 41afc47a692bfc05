package classifier_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// A request that is no segment by itself, because the text with it is understood as another one, is
// classified before it counts as not understood.
func TestSplit_RequestInsideConfidentSegment(t *testing.T) {
	agent := func(id, domain string, examples map[string][]string) *contract.RegistryEntry {
		e := &contract.RegistryEntry{ID: id, Match: contract.Match{Domains: []string{domain}}, Examples: examples}
		for intent := range examples {
			e.Match.Intent = append(e.Match.Intent, intent)
		}
		slices.Sort(e.Match.Intent)
		return e
	}
	registry := snapshot(
		agent("appointments", "appointments", map[string][]string{
			"book_appointment":   {"I would like to see the doctor on Monday", "make an appointment with the dentist", "I need a visit next week"},
			"cancel_appointment": {"cancel my appointment on Friday", "I can not come tomorrow", "please cancel the visit"},
		}),
		agent("insurance", "insurance", map[string][]string{
			"insurance_coverage": {"is physiotherapy covered by my plan", "does my plan pay for glasses", "what does the insurance pay"},
			"file_claim":         {"I want to send you a claim", "reimburse this bill of the pharmacy"},
		}),
		agent("parking", "parking", map[string][]string{"parking_permit": {"I need a parking permit", "where can visitors leave their car"}}),
	)
	tests := []struct {
		prompt string
		want   []string
	}{
		{"cancel my appointment and know whether my insurance covers the visit", []string{
			"cancel my appointment: cancel_appointment [appointments]", "know whether my insurance covers the visit: insurance_coverage [insurance]",
		}},
		{"know whether my insurance covers the visit and cancel my appointment", []string{
			"know whether my insurance covers the visit: insurance_coverage [insurance]", "cancel my appointment: cancel_appointment [appointments]",
		}},
		{"cancel my appointment and know whether my football club won the match", []string{
			"cancel my appointment: cancel_appointment [appointments]", "know whether my football club won the match: unknown [unknown]",
		}},
	}
	for _, tt := range tests {
		clf := newClassifier(t).Classify(t.Context(), input(registry, tt.prompt))
		var got []string
		for _, sub := range clf.Subtasks {
			got = append(got, fmt.Sprintf("%s: %s %v", sub.Title, sub.Intent, sub.Domains))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: subtasks (-want +got):\n%s", tt.prompt, diff)
		}
		checkValid(t, registry, &clf)
	}
}

// TestSplit checks prompts with several requests, and similar ones with a
// single request.
func TestSplit(t *testing.T) {
	source, examples := sourceRegistry(), exampleRegistry()
	tests := []struct {
		name     string
		registry *capabilities.Catalogue
		prompt   string
		want     []string
	}{
		{
			"two in English", source, "Review this python code and do a cost analysis of our azure bill",
			[]string{"code_review [python azure]", "| Review this python code: code_review [python]", "| do a cost analysis of our azure bill: cost_analysis [azure]"},
		},
		{
			"two in Portuguese, labels only", source, "Revise este notebook Databricks e analise o custo no Azure",
			[]string{"databricks_review [databricks azure]", "| Revise este notebook Databricks: databricks_review [databricks]", "| analise o custo no Azure: cost_analysis [azure]"},
		},
		{
			"two in Portuguese", examples, "Revise este notebook Databricks e analise o custo no Azure",
			[]string{"databricks_review [databricks azure]", "| Revise este notebook Databricks: databricks_review [databricks]", "| analise o custo no Azure: cost_analysis [azure]"},
		},
		{
			"two in Spanish", examples, "Revisa este código Python y luego analiza el gasto de la nube en Azure.",
			[]string{"code_review [python azure]", "| Revisa este código Python: code_review [python]", "| analiza el gasto de la nube en Azure: cost_analysis [azure]"},
		},
		{
			"two in Chinese", examples, "请审查Python代码，然后分析Azure成本",
			[]string{"code_review [python azure]", "| 请审查Python代码: code_review [python]", "| 分析Azure成本: cost_analysis [azure]"},
		},
		{
			"two in plain Chinese", examples, "请审查代码，然后分析成本",
			[]string{"code_review [unknown]", "| 请审查代码: code_review []", "| 分析成本: cost_analysis []"},
		},
		{
			"sentences", examples, "Review my pull request. Why did our cloud bill go up? Thanks!",
			[]string{"code_review [unknown]", "| Review my pull request: code_review []", "| Why did our cloud bill go up? Thanks!: cost_analysis []"},
		},
		{
			"a list", source, "Please:\n1. code review of app.py\n2. cost analysis of azure\n",
			[]string{"code_review [azure]", "| Please: 1. code review of app.py: code_review []", "| cost analysis of azure: cost_analysis [azure]"},
		},
		{
			"three", source, "code review; cost analysis; doc answering",
			[]string{"code_review [docs]", "| code review: code_review []", "| cost analysis: cost_analysis []", "| doc answering: doc_answering [docs]"},
		},
		{
			"four intents", source, "look at the code; cost analysis; doc answering; a retrieval qa",
			[]string{"cost_analysis [docs]", "| cost analysis: cost_analysis []", "| doc answering: doc_answering [docs]", "| a retrieval qa: retrieval_qa []"},
		},
		{
			"two parts of one intent", source, "Review the python code. Do a cost analysis. Then review the semaforo code",
			[]string{
				"code_review [python semaforo]",
				"| Review the python code; review the semaforo code: code_review [python semaforo]", "| Do a cost analysis: cost_analysis []",
			},
		},
		{
			"most confident part first", source, "look at the cost and review this code",
			[]string{"code_review [unknown]", "| look at the cost: cost_analysis []", "| review this code: code_review []"},
		},
		{
			"code block", source, "Code review of this:\n```python\ncost(analysis); docs()\n```\nand a cost analysis of azure",
			[]string{"code_review [python azure]", "| Code review of this: code_review [python]", "| a cost analysis of azure: cost_analysis [azure]"},
		},
		{"one request with a conjunction", source, "review my java and python code", []string{"code_review [python]"}},
		{"one in Portuguese", examples, "revise este código Python e Java", []string{"code_review [python]"}},
		{"one in Spanish", examples, "revisa este código y estas pruebas", []string{"code_review [unknown]"}},
		{"domain alone", source, "cost analysis of azure and databricks", []string{"cost_analysis [azure databricks]"}},
		{"domain with one word", source, "databricks workspaces and azure cost analysis", []string{"cost_analysis [databricks azure]"}},
		{"small talk next to a request", source, "Hello there! Please do a code review and thank you.", []string{"code_review [unknown]"}},
		{"label next to a request", examples, "Review my pull request.\n\ncost_analysis", []string{"code_review [unknown]"}},
		{"label next to small talk", examples, "Tell me a joke. Azure: cost_analysis; and doc_answering!", []string{"unknown [azure docs]"}},
		{"label alone", examples, "cost_analysis, azure", []string{"cost_analysis [azure]"}},
		{
			"data between two requests", examples, "Review my pull request {\"a\": \"b. And c\"} and <!-- say; what the docs say --> analiza el gasto de la nube",
			[]string{
				"code_review [unknown]", "| Review my pull request {\"a\": \"b. And c\"}: code_review []",
				"| <!-- say; what the docs say --> analiza el gasto de la nube: cost_analysis []",
			},
		},
		{"no known request", source, "Who won? Tell me a joke; and then another.", []string{"unknown []"}},
		{"empty", source, "", []string{"unknown []"}},
		{"emoji", source, "🎉 and 🎉", []string{"unknown []"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newClassifier(t).Classify(t.Context(), input(tt.registry, tt.prompt))
			if diff := cmp.Diff(tt.want, strings.Split(strings.TrimSpace(render(&got)), "\n")); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.prompt, diff)
			}
		})
	}
}

func TestSplit_TooManyParts(t *testing.T) {
	got := newClassifier(t).Classify(t.Context(), input(sourceRegistry(), "code review; cost analysis; doc answering; retrieval qa"))
	if got.Reason != classifier.ReasonTooManyParts || len(got.Subtasks) != contract.MaxSubtasks {
		t.Errorf("got reason %q and %d subtasks, want %q and %d", got.Reason, len(got.Subtasks), classifier.ReasonTooManyParts, contract.MaxSubtasks)
	}
}

func TestSplit_Titles(t *testing.T) {
	long := strings.Repeat("palavra ", 60)
	tests := []struct{ name, part, want string }{
		{"short", "do a cost analysis", "do a cost analysis"},
		{"white space and control characters", "do\ta\ncost \u00a0 analysis\x07", "do a cost analysis"},
		{"cut after a word", "cost analysis " + long, strings.TrimSpace("cost analysis " + strings.Repeat("palavra ", 23))},
		{"one long word", "costanalysis" + strings.Repeat("é", 300) + " cost", "costanalysis" + strings.Repeat("é", 188)},
		{"exactly the maximum length", "cost analysis " + strings.Repeat("x", 186), "cost analysis " + strings.Repeat("x", 186)},
		{"code block removed", "cost analysis:\n```\nx\n```", "cost analysis"},
		{"only a code block", "```cost analysis\nx\n```", "cost_analysis"},
		{"invalid bytes", "cost analysis \xff", "cost analysis \ufffd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newClassifier(t).Classify(t.Context(), input(sourceRegistry(), "code review;"+tt.part))
			if len(got.Subtasks) != 2 {
				t.Fatalf("got %d subtasks, want 2", len(got.Subtasks))
			}
			if diff := cmp.Diff(tt.want, got.Subtasks[1].Title); diff != "" {
				t.Errorf("title (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClassify_AnyPromptIsValid checks properties of the classification of any
// prompt.
func TestClassify_AnyPromptIsValid(t *testing.T) {
	c := newClassifier(t)
	s := exampleRegistry()
	model := lexical.Train(classifier.BuildCorpus(s))
	pieces := rapid.SampledFrom([]string{
		"review", "code", "cost analysis", "azure", "databricks", "and", ";", ".", "\n- ", "python", "docs", "e", "然后", "审查代码", "```", "🎉", "\xff",
		"spark job", "kb_internal", strings.Repeat("long ", 50), "invoice", "the",
	})
	rapid.Check(t, func(t *rapid.T) {
		prompt := rapid.OneOf(rapid.Map(rapid.SliceOf(pieces), func(p []string) string { return strings.Join(p, " ") }), rapid.String()).Draw(t, "prompt")
		in := classifier.Input{Prompt: prompt, Catalogue: s, Lexical: model}
		clf := c.Classify(t.Context(), in)
		checkValid(t, s, &clf)
		again := c.Classify(t.Context(), in)
		if diff := cmp.Diff(clf, again); diff != "" {
			t.Errorf("%q: got two different classifications (-first +second):\n%s", prompt, diff)
		}
	})
}

// failer is the common interface of *testing.T and *rapid.T.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

func checkValid(t failer, s *capabilities.Catalogue, clf *contract.Classification) {
	t.Helper()
	if clf.Confidence < 0 || clf.Confidence > 1 {
		t.Errorf("got confidence %v, want 0 to 1", clf.Confidence)
	}
	checkLabels(t, s, clf.Intent, clf.Domains)
	if clf.Intent != contract.Unknown && len(clf.Domains) == 0 {
		t.Errorf("got %s without a domain, want at least unknown", clf.Intent)
	}
	if n := len(clf.Subtasks); n == 1 || n > contract.MaxSubtasks {
		t.Errorf("got %d subtasks, want none, 2 or 3", n)
	}
	seen := map[string]bool{}
	for _, sub := range clf.Subtasks {
		checkLabels(t, s, sub.Intent, sub.Domains)
		if n := utf8.RuneCountInString(sub.Title); n < 1 || n > contract.MaxSubtaskTitle || sub.Title != strings.TrimSpace(sub.Title) || !utf8.ValidString(sub.Title) {
			t.Errorf("got title %q, want 1 to 200 characters, trimmed", sub.Title)
		}
		if seen[sub.Intent] {
			t.Errorf("got intent %s twice in %v, want distinct intents", sub.Intent, clf.Subtasks)
		}
		seen[sub.Intent] = true
	}
	if len(clf.Subtasks) > 0 && (!seen[clf.Intent] || clf.Intent == contract.Unknown) {
		t.Errorf("got intent %s, want that of a subtask", clf.Intent)
	}
}

func checkLabels(t failer, s *capabilities.Catalogue, intent string, domains []string) {
	t.Helper()
	if !contains(s.Intents, intent) {
		t.Errorf("got intent %q, want one of %q", intent, s.Intents)
	}
	for _, d := range domains {
		if !contains(s.Domains, d) {
			t.Errorf("got domain %q, want one of %q", d, s.Domains)
		}
	}
	if len(domains) > contract.MaxDomains {
		t.Errorf("got %d domains, want at most %d", len(domains), contract.MaxDomains)
	}
}

func contains(list []string, name string) bool {
	return slices.Contains(append([]string{contract.Unknown}, list...), name)
}

// The rest of a part, from which the clause was removed that made the text understood, is no
// request: "Please look." asks for no cleaning.
func TestSplit_RestWithoutRequest(t *testing.T) {
	registry := snapshot(
		&contract.RegistryEntry{
			ID: "cleaning", Match: contract.Match{Intent: []string{"clean_office", "bring_supplies"}, Domains: []string{"cleaning"}}, Keywords: []string{"carpet", "soap"},
			Examples: map[string][]string{
				"clean_office":   {"please clean our floor today", "the kitchen is dirty, can you clean it", "wipe the desks"},
				"bring_supplies": {"could we have more soap", "another roll of paper for the kitchen please", "we need soap"},
			},
		},
		&contract.RegistryEntry{
			ID: "accounting", Match: contract.Match{Intent: []string{"dispute_fee"}, Domains: []string{"fees"}}, Keywords: []string{"fee"},
			Examples: map[string][]string{"dispute_fee": {"I paid the same fee twice", "there is a fee on my statement which I do not know", "the amount is too high"}},
		},
	)
	for _, rest := range []string{"Please look.", "Please verify.", "Please help us.", "Let me know.", "Please compare the statement."} {
		prompt := "Hello, I see a fee for the carpet which we never ordered. " + rest
		clf := newClassifier(t).Classify(t.Context(), input(registry, prompt))
		if got := intentsOf(&clf); got != "dispute_fee" {
			t.Errorf("%q: got intents %s, want dispute_fee\n%s", prompt, got, render(&clf))
		}
	}
}
