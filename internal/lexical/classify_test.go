package lexical_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// TestClassify_Names checks that the confidence in an intent is the share of
// its name's words that the text contains, and that a domain needs all its
// words.
func TestClassify_Names(t *testing.T) {
	m := lexical.Train(sourceCorpus())
	tests := []struct {
		name       string
		text       string
		intent     string
		confidence float64
		domains    []string
	}{
		{"the whole name", "Please do a code review of this python module", "code_review", 1, []string{"python"}},
		{"the words of the name apart", "review this python code", "code_review", 1, []string{"python"}},
		{"half of a name", "have a look at this code", "code_review", 0.5, nil},
		{"case and punctuation", "REVIEW!!! this (Python) CODE...", "code_review", 1, []string{"python"}},
		{"the label itself", "code_review kb_internal", "code_review", 1, []string{"kb_internal"}},
		{"the label as one word", "codereview of kbinternal", "code_review", 1, []string{"kb_internal"}},
		{"other separators", "code-review for kb.internal", "code_review", 1, []string{"kb_internal"}},
		{"half of a domain is none", "cost analysis of internal things", "cost_analysis", 1, nil},
		{"plural", "cost analyses of our docs", "cost_analysis", 1, []string{"docs"}},
		{"verb forms", "reviewing the codes", "code_review", 1, nil},
		{"British and American", "analyze the cost", "cost_analysis", 1, nil},
		{"domain in the singular", "answer this from the doc", "doc_answering", 1, []string{"docs"}},
		{"accents", "códe revïew do Semáforo", "code_review", 1, []string{"semaforo"}},
		{"decomposed accents", "cost analysis do sema\u0301foro", "cost_analysis", 1, []string{"semaforo"}},
		{"full width", "ｒｅｖｉｅｗ ｔｈｉｓ ｐｙｔｈｏｎ ｃｏｄｅ", "code_review", 1, []string{"python"}},
		{"invisible characters", "re\u200bview the co\u00adde", "code_review", 1, nil},
		{"Portuguese cognate", "analise isto no Azure", "cost_analysis", 0.5, []string{"azure"}},
		{"Spanish cognate", "analizar el coste de Azure", "cost_analysis", 1, []string{"azure"}},
		{"domains in the order of the text", "azure, docs and python", "doc_answering", 0.5, []string{"azure", "docs", "python"}},
		{"three domains at most", "docs azure semaforo python", "doc_answering", 0.5, []string{"docs", "azure", "semaforo"}},
		{"domain inside Chinese", "请看一下Python模块", contract.Unknown, 0, []string{"python"}},
		{"right to left", "\u200fבבקשה code review של python\u200f", "code_review", 1, []string{"python"}},
		{"emoji around", "🚀code🚀review🚀", "code_review", 1, nil},
		{"fenced code is not read", "do a code review\n```python\nazure.docs()\n```\nthanks", "code_review", 1, []string{"python"}},
		{"fenced code alone", "```\ncode review\n```", contract.Unknown, 0, nil},
		{"quoted words are read", "run a `code` ```review```", "code_review", 1, nil},
		{"nothing", "", contract.Unknown, 0, nil},
		{"only space and marks", " \t\n\u00a0 .,;!? ", contract.Unknown, 0, nil},
		{"only emoji", "🎉🎉", contract.Unknown, 0, nil},
		{"not UTF-8", "\xff\xfe code \x80 review", "code_review", 1, nil},
		{"weather", "what's the weather like in Paris tomorrow?", contract.Unknown, 0, nil},
		{"sports", "who won the football match last night", contract.Unknown, 0, nil},
		{"a joke", "tell me a joke", contract.Unknown, 0, nil},
		{"a joke in Portuguese", "me conte uma piada", contract.Unknown, 0, nil},
		{"a joke in Spanish", "cuéntame un chiste", contract.Unknown, 0, nil},
		{"a joke in Chinese", "请给我讲个笑话", contract.Unknown, 0, nil},
		{"Costa Rica costs nothing", "a trip to Costa Rica", contract.Unknown, 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := m.Classify(tt.text)
			if got.Intent != tt.intent || got.Confidence != tt.confidence {
				t.Errorf("got %s with %v, want %s with %v", got.Intent, got.Confidence, tt.intent, tt.confidence)
			}
			if got.Domains == nil {
				t.Error("got nil domains, want an empty list")
			}
			if diff := cmp.Diff(strings.Join(tt.domains, " "), strings.Join(got.Domains, " ")); diff != "" {
				t.Errorf("domains (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClassify_Examples checks the rules for examples and keywords.
func TestClassify_Examples(t *testing.T) {
	m := lexical.Train(richCorpus())
	tests := []struct {
		name   string
		text   string
		intent string
		least  float64
		most   float64
	}{
		{"all of an example", "could you please review the pull request of Ana", "code_review", 1, 1},
		{"its words in another order", "this pull request needs a review", "code_review", 1, 1},
		{"in Portuguese", "Por favor, revise este código em Python para mim", "code_review", 1, 1},
		{"in Portuguese without accents", "revise este codigo python", "code_review", 1, 1},
		{"in Spanish", "¿Puedes revisar este código?", "code_review", 1, 1},
		{"in Chinese", "请审查代码", "code_review", 1, 1},
		{"near in Chinese", "请审查这段代码", "code_review", 0.5, 0.95},
		{"the more specific example", "revise este notebook databricks", "databricks_review", 1, 1},
		{"cost in Portuguese", "analise o custo no Azure", "cost_analysis", 1, 1},
		{"cost in Chinese", "分析云成本", "cost_analysis", 1, 1},
		{"near an example", "why did the bill for our cloud double", "cost_analysis", 0.5, 0.95},
		{"near in Spanish", "analiza el gasto", "cost_analysis", 0.5, 0.95},
		{"one common word is no paraphrase", "how do I look good", contract.Unknown, 0, 0.49},
		{"a keyword with a word of the name", "the cost on this invoice", "cost_analysis", 1, 1},
		{"a keyword with a word of an example", "run pylint on my function", "code_review", 1, 1},
		{"a keyword of two words", "is there a code smell in the request", "code_review", 1, 1},
		{"a keyword alone", "finops", contract.Unknown, 0.01, 0.49},
		{"half a keyword", "a bad smell in the kitchen", contract.Unknown, 0, 0.49},
		{"an example of stop words", "Who are you?", "retrieval_qa", 1, 1},
		{"its words in another request", "who are you going to vote for", contract.Unknown, 0, 0.49},
		{"out of scope", "what is the weather in Lisbon", contract.Unknown, 0, 0.49},
		{"out of scope in Portuguese", "quem ganhou o jogo de ontem", contract.Unknown, 0, 0.49},
		{"out of scope in Chinese", "今天天气怎么样", contract.Unknown, 0, 0.49},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := m.Classify(tt.text)
			if got.Intent != tt.intent {
				t.Errorf("got intent %s, want %s (%+v)", got.Intent, tt.intent, got)
			}
			if got.Confidence < tt.least || got.Confidence > tt.most {
				t.Errorf("got confidence %v, want %v to %v", got.Confidence, tt.least, tt.most)
			}
		})
	}
}

func TestClassify_Alternatives(t *testing.T) {
	m := lexical.Train(sourceCorpus())
	tests := []struct {
		name string
		text string
		want lexical.Prediction
	}{
		{
			name: "the chosen intent is not among them",
			text: "review the code",
			want: lexical.Prediction{
				Intent: "code_review", Confidence: 1, BestIntent: "code_review", Domains: []string{},
				Alternatives: []contract.IntentScore{{Intent: "databricks_review", Confidence: 0.5}, {Intent: "serverless_review", Confidence: 0.5}},
			},
		},
		{
			name: "equal ones go by name",
			text: "review",
			want: lexical.Prediction{
				Intent: "code_review", Confidence: 0.5, BestIntent: "code_review", Domains: []string{},
				Alternatives: []contract.IntentScore{{Intent: "databricks_review", Confidence: 0.5}, {Intent: "serverless_review", Confidence: 0.5}},
			},
		},
		{
			name: "a word that is only a domain comes last among equals",
			text: "the databricks cost",
			want: lexical.Prediction{
				Intent: "cost_analysis", Confidence: 0.5, BestIntent: "cost_analysis", Domains: []string{"databricks"}, DomainOrigin: contract.DomainNamed,
				Alternatives: []contract.IntentScore{{Intent: "databricks_review", Confidence: 0.5}},
			},
		},
		{
			name: "three at most, the rarer words first",
			text: "review the cost of answering by retrieval",
			want: lexical.Prediction{
				Intent: "cost_analysis", Confidence: 0.5, BestIntent: "cost_analysis", Domains: []string{},
				Alternatives: []contract.IntentScore{
					{Intent: "doc_answering", Confidence: 0.5}, {Intent: "retrieval_qa", Confidence: 0.5}, {Intent: "code_review", Confidence: 0.5},
				},
			},
		},
		{
			name: "only a domain",
			text: "databricks",
			want: lexical.Prediction{Intent: "databricks_review", Confidence: 0.5, BestIntent: "databricks_review", Domains: []string{"databricks"}, DomainOrigin: contract.DomainNamed, DomainOnly: true},
		},
		{
			name: "a domain and a whole request",
			text: "open that databricks notebook",
			want: lexical.Prediction{Intent: "databricks_review", Confidence: 0.5, BestIntent: "databricks_review", Domains: []string{"databricks"}, DomainOrigin: contract.DomainNamed},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := m.Classify(tt.text)
			if len(got.Alternatives) == 0 {
				got.Alternatives = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("prediction (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClassify_UnknownKeepsNearestIntent checks that below RuleThreshold no
// intent is named, but the nearest is listed.
func TestClassify_UnknownKeepsNearestIntent(t *testing.T) {
	m := lexical.Train(lexical.Corpus{Intents: []lexical.IntentDoc{{Name: "quarterly_tax_report"}, {Name: "parking_permit"}}})
	got := m.Classify("a report please")
	want := lexical.Prediction{
		Intent: contract.Unknown, Confidence: 0.3333, BestIntent: "quarterly_tax_report", Domains: []string{},
		Alternatives: []contract.IntentScore{{Intent: "quarterly_tax_report", Confidence: 0.3333}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prediction (-want +got):\n%s", diff)
	}
}

// TestLabels checks all spellings of names in registries.
func TestLabels(t *testing.T) {
	m := lexical.Train(lexical.Corpus{
		Intents: []lexical.IntentDoc{
			{Name: "deployService"},
			{Name: "HTTPCheck.run"},
			{Name: "book/flight"},
			{Name: "to_do"},
			{Name: "代码审查"},
			{Name: "___"},
			{Name: ""},
			{Name: "🎉"},
			{Name: "fooBar_baz"},
		},
		Domains: []string{"JavaScript", "C++", "C#", "c", "kb internal", "", "知识库"},
	})
	tests := []struct {
		text    string
		intent  string
		domains string
	}{
		{"deploy the service", "deployService", ""},
		{"deployService", "deployService", ""},
		{"check this http run", "HTTPCheck.run", ""},
		{"book a flight", "book/flight", ""},
		{"I want to go home", contract.Unknown, ""}, // "to" of to_do is a stop word
		{"add it to my to do list", "to_do", ""},
		{"请做代码审查", "代码审查", ""},
		{"fooBar_baz", "fooBar_baz", ""},
		{"in javascript", contract.Unknown, "JavaScript"},
		{"in Java Script", contract.Unknown, "JavaScript"},
		{"in java", contract.Unknown, ""},
		{"written in C++, not C#.", contract.Unknown, "C++ C#"},
		{"written in c", contract.Unknown, "c"},
		{"kb-internal", contract.Unknown, "kb internal"},
		{"搜索知识库", contract.Unknown, "知识库"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got := m.Classify(tt.text)
			if got.Intent != tt.intent {
				t.Errorf("got intent %q with %v, want %q", got.Intent, got.Confidence, tt.intent)
			}
			if domains := strings.Join(got.Domains, " "); domains != tt.domains {
				t.Errorf("got domains %q, want %q", domains, tt.domains)
			}
		})
	}
}

func TestClassify_EmptyCorpus(t *testing.T) {
	got := lexical.Train(lexical.Corpus{}).Classify("review this python code")
	if diff := cmp.Diff(lexical.Prediction{Intent: contract.Unknown, Domains: []string{}}, got); diff != "" {
		t.Errorf("prediction (-want +got):\n%s", diff)
	}
}

// TestClassify_LongText checks that a prompt of the maximum size is classified
// by its words, and code in it is ignored.
func TestClassify_LongText(t *testing.T) {
	m := lexical.Train(richCorpus())
	for name, filler := range map[string]string{
		"prose":     "Lorem ipsum dolor sit amet; consectetur adipiscing elit. ",
		"code":      "```\nazure docs\n",
		"one word":  "a",
		"ideograph": "天",
		"accents":   "e\u0301",
		"backticks": "`",
		"quotes":    "`a` ",
		"fences":    "```a``` ",
		"commas":    "a,",
		"newlines":  "\n",
		"bullets":   "\n- a",
		"joints":    "and ",
		"objects":   `{"code": "docs"}`,
		"open ones": `{"a":[`,
		"braces":    `{ `,
		"comments":  "<!-- docs -->",
		"no end":    "<!--",
		"labels":    "cost_analysis ",
		"joined":    "a_",
		"capitals":  "aB",
		"not UTF-8": "\xf0",
	} {
		t.Run(name, func(t *testing.T) {
			const want = "review this python code"
			text := want + "\n" + strings.Repeat(filler, contract.MaxPromptBytes/len(filler))
			got := m.Classify(text)
			if got.Intent != "code_review" || got.Confidence != 1 || len(got.Domains) == 0 || got.Domains[0] != "python" {
				t.Errorf("got %+v, want code_review with 1, python first", got)
			}
			if parts := m.SplitClauses(text); len(parts) == 0 || !strings.HasPrefix(parts[0], want) {
				t.Errorf("got %d segments, want the request first", len(parts))
			}
		})
	}
}
