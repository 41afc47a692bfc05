package lexical

import "testing"

// FuzzText reads any bytes as a prompt and as parts of a registry.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "Please do a code review of this python module", "Revise este notebook Databricks e analise o custo no Azure",
		"请审查这段代码，然后分析成本", "a\n```py\nx; y\n```z. And `q` 1. 2) - • https://x/;", "İ ß ﬁ ｺｰﾄﾞ \u0301\u200d\u202e 👩‍💻",
		"\xff\xc3(", "```", "````\n```", "C++ C# fooBar HTTPServer a_b", "e.g. Dr. p.ex. é. x. ؟ ؛ ।",
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
		m.Nearest(text, 3, func(string, string) bool { return true })
	})
}
