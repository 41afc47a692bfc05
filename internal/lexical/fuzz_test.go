package lexical

import (
	"strings"
	"testing"
)

// FuzzText uses arbitrary bytes as a prompt and in a registry.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "Please do a code review of this python module", "Revise este notebook Databricks e analise o custo no Azure",
		"请审查这段代码，然后分析成本", "a\n```py\nx; y\n```z. And `q` 1. 2) - • https://x/;", "İ ß ﬁ ｺｰﾄﾞ \u0301\u200d\u202e 👩‍💻",
		"\xff\xc3(", "```", "````\n```", "C++ C# fooBar HTTPServer a_b", "e.g. Dr. p.ex. é. x. ؟ ؛ ।",
		`{"intent": "x", "y": [1, true, {"z": null}]} <!-- a; b --> code_review codeReview`, `{"a": "b`, "<!-- x", `{"a":{"b":[`, "x_code_review_2",
	} {
		f.Add(seed, "code_review")
		f.Add("review "+seed, seed)
	}
	f.Fuzz(func(t *testing.T, text, label string) {
		m := Train(Corpus{
			Intents: []IntentDoc{{Name: label, Examples: []string{text}, Keywords: []string{label}}, {Name: "code_review", Examples: []string{label}}},
			Domains: []string{label, "python"},
		})
		checkPrediction(t, m, text)
		checkSegments(t, m, text)
		m.NearestExamples(text, 3, func(string, string) bool { return true })
	})
}

// FuzzLearned uses arbitrary bytes with a statistical model.
func FuzzLearned(f *testing.F) {
	m := Train(trainedCorpus())
	for _, seed := range []string{
		"", "please pay the invoice", "pay, order, and then reset; 明天，下雨、吗", "a\n```py\nx; y\n```z", "\xff\xc3(, ", "`a, b`, c", `{"a, b": "c, d"}, <!-- e, f -->, pay_invoice, payInvoice`, "ﬁ ｺｰﾄﾞ \u0301\u200d",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkPrediction(t, m, text)
		rest := text
		for _, part := range m.NewText(text).SplitRequests() {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%q: got request %q, want a part of %q", text, part, rest)
			}
			rest = after
		}
		if e := m.Explain(text); len(e.Features) > maxFeatures {
			t.Errorf("%q: got %d features, want at most %d", text, len(e.Features), maxFeatures)
		}
	})
}
