package lexical_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// TestClassify_Names checks that a name is recognized by all its words and not by one, and that a
// domain needs all its words.
func TestClassify_Names(t *testing.T) {
	m := lexical.Train(sourceCorpus())
	tests := []struct {
		name    string
		text    string
		intent  string
		domains []string
	}{
		{"whole name", "Please do a code review of this python module", "code_review", []string{"python"}},
		{"words of the name apart", "review this python code", "code_review", []string{"python"}},
		{"word that no other name has", "have a look at this code", "code_review", nil},
		{"case and punctuation", "REVIEW!!! this (Python) CODE...", "code_review", []string{"python"}},
		{"label", "code_review kb_internal", "code_review", []string{"kb_internal"}},
		{"label as one word", "codereview of kbinternal", "code_review", []string{"kb_internal"}},
		{"other separators", "code-review for kb.internal", "code_review", []string{"kb_internal"}},
		{"half of a domain is none", "cost analysis of internal things", "cost_analysis", nil},
		{"plural", "cost analyses of our docs", "cost_analysis", []string{"docs"}},
		{"verb forms", "reviewing the codes", "code_review", nil},
		{"British and American", "analyze the cost", "cost_analysis", nil},
		{"domain in the singular", "answer this from the doc", "doc_answering", []string{"docs"}},
		{"accents", "códe revïew do Semáforo", "code_review", []string{"semaforo"}},
		{"decomposed accents", "cost analysis do sema\u0301foro", "cost_analysis", []string{"semaforo"}},
		{"full width", "ｒｅｖｉｅｗ ｔｈｉｓ ｐｙｔｈｏｎ ｃｏｄｅ", "code_review", []string{"python"}},
		{"invisible characters", "re\u200bview the co\u00adde", "code_review", nil},
		{"half of a name in Portuguese", "analise isto no Azure", contract.Unknown, []string{"azure"}},
		{"Spanish cognate", "analizar el coste de Azure", "cost_analysis", []string{"azure"}},
		{"domains in the order of the text", "azure, docs and python", contract.Unknown, []string{"azure", "docs", "python"}},
		{"three domains at most", "docs azure semaforo python", contract.Unknown, []string{"docs", "azure", "semaforo"}},
		{"domain inside Chinese", "请看一下Python模块", contract.Unknown, []string{"python"}},
		{"right to left", "\u200fבבקשה code review של python\u200f", "code_review", []string{"python"}},
		{"emoji around", "🚀code🚀review🚀", "code_review", nil},
		{"fenced code is not read", "do a code review\n```python\nazure.docs()\n```\nthanks", "code_review", []string{"python"}},
		{"fenced code alone", "```\ncode review\n```", contract.Unknown, nil},
		{"quoted words are read", "run a `code` ```review```", "code_review", nil},
		{"nothing", "", contract.Unknown, nil},
		{"only space and marks", " \t\n\u00a0 .,;!? ", contract.Unknown, nil},
		{"only emoji", "🎉🎉", contract.Unknown, nil},
		{"not UTF-8", "\xff\xfe code \x80 review", "code_review", nil},
		{"weather", "what's the weather like in Paris tomorrow?", contract.Unknown, nil},
		{"sports", "who won the football match last night", contract.Unknown, nil},
		{"one word of a name and another request", "delete my databricks workspace", contract.Unknown, []string{"databricks"}},
		{"question about a domain", "What is Databricks?", contract.Unknown, []string{"databricks"}},
		{"a joke", "tell me a joke", contract.Unknown, nil},
		{"joke in Portuguese", "me conte uma piada", contract.Unknown, nil},
		{"joke in Spanish", "cuéntame un chiste", contract.Unknown, nil},
		{"joke in Chinese", "请给我讲个笑话", contract.Unknown, nil},
		{"Costa Rica costs nothing", "a trip to Costa Rica", contract.Unknown, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := m.Classify(tt.text)
			if got.Intent != tt.intent || got.Intent != contract.Unknown && got.Confidence < lexical.MinActionConfidence {
				t.Errorf("got %s with %v, want %s", got.Intent, got.Confidence, tt.intent)
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

// TestClassify_Examples checks a few examples and keywords for each intent.
func TestClassify_Examples(t *testing.T) {
	m := lexical.Train(richCorpus())
	tests := []struct {
		name   string
		text   string
		intent string
	}{
		{"all of an example", "could you please review the pull request of Ana", "code_review"},
		{"its words in another order", "this pull request needs a review", "code_review"},
		{"in Portuguese", "Por favor, revise este código em Python para mim", "code_review"},
		{"in Portuguese without accents", "revise este codigo python", "code_review"},
		{"in Spanish", "¿Puedes revisar este código?", "code_review"},
		{"in Chinese", "请审查代码", "code_review"},
		{"near in Chinese", "请审查这段代码", "code_review"},
		{"more specific example", "revise este notebook databricks", "databricks_review"},
		{"cost in Portuguese", "analise o custo no Azure", "cost_analysis"},
		{"cost in Chinese", "分析云成本", "cost_analysis"},
		{"near an example", "why did the bill for our cloud double", "cost_analysis"},
		{"near in Spanish", "analiza el gasto", "cost_analysis"},
		{"one common word", "how do I look good in red", contract.Unknown},
		{"keyword with a word of the name", "the cost on this invoice", "cost_analysis"},
		{"keyword with a word of an example", "run pylint on my function", "code_review"},
		{"keyword with two words", "is there a code smell in the request", "code_review"},
		{"keyword only", "finops", "cost_analysis"},
		{"half a keyword", "a bad smell in the kitchen", contract.Unknown},
		{"example of stop words", "Who are you?", "retrieval_qa"},
		{"its words in another request", "who are you going to vote for", contract.Unknown},
		{"out of scope", "what is the weather in Lisbon", contract.Unknown},
		{"out of scope in Portuguese", "quem ganhou o jogo de ontem", contract.Unknown},
		{"out of scope in Chinese", "今天天气怎么样", contract.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := m.Classify(tt.text)
			if got.Intent != tt.intent || got.Intent != contract.Unknown && got.Confidence < lexical.MinActionConfidence {
				t.Errorf("got intent %s, want %s (%+v)", got.Intent, tt.intent, got)
			}
		})
	}
}

// TestClassify_Alternatives checks that a similar intent is listed, and that the chosen one is not
// among its alternatives.
func TestClassify_Alternatives(t *testing.T) {
	m := lexical.Train(sourceCorpus())
	got := m.Classify("review the code")
	if got.Intent != "code_review" || len(got.Alternatives) == 0 || got.Alternatives[0].Intent == "code_review" {
		t.Errorf("got %+v, want code_review and others", got)
	}
	if got := m.Classify("databricks"); got.Intent != contract.Unknown || len(got.Alternatives) == 0 || got.Alternatives[0].Intent != "databricks_review" {
		t.Errorf("got %+v, want unknown, near databricks_review", got)
	}
	m = lexical.Train(lexical.Corpus{Intents: []lexical.IntentDoc{{Name: "quarterly_tax_report"}, {Name: "parking_permit"}}})
	got = m.Classify("a report please")
	if got.Intent != contract.Unknown || got.BestIntent != "quarterly_tax_report" || got.Alternatives[0] != (contract.IntentScore{Intent: got.BestIntent, Confidence: got.Confidence}) {
		t.Errorf("got %+v, want unknown, near quarterly_tax_report", got)
	}
}

// TestClassify_ReadsBothEndsOfLongTexts checks that a document between two parts of a request does
// not change the classification.
func TestClassify_ReadsBothEndsOfLongTexts(t *testing.T) {
	m := lexical.Train(sourceCorpus())
	filler := strings.Repeat("lorem ipsum dolor sit amet ", 300)
	for name, ends := range map[string][2]string{
		"beginning": {"review the python code " + filler, filler},
		"end":       {filler, filler + " review the python code"},
	} {
		middle := strings.Repeat("analyse the azure costs ", 1000)
		got, want := m.Classify(ends[0]+middle+ends[1]), m.Classify(ends[0]+ends[1])
		if diff := cmp.Diff(want, got); diff != "" || got.BestIntent != "code_review" {
			t.Errorf("request at the %s: got %+v, and with a document in the middle (-without +with):\n%s", name, got, diff)
		}
	}
	unspaced := strings.Repeat("审查代码", 10_000)
	if got, want := m.Classify(unspaced), m.Classify(unspaced[:12*500]); got.Intent != want.Intent {
		t.Errorf("got the intent %s of a long text without spaces, want %s", got.Intent, want.Intent)
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

// TestClassify_LongText checks that a prompt of the maximum size is classified by its words, and
// that code in it is ignored.
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
			if len(got.Domains) == 0 || got.Domains[0] != "python" {
				t.Errorf("got %+v, want python first", got)
			}
			parts := m.SplitClauses(text)
			if len(parts) == 0 || !strings.HasPrefix(parts[0], want) {
				t.Fatalf("got %d segments, want the request first", len(parts))
			}
			switch name {
			case "prose", "joints": // the request is one clause of thousands
				got = m.Classify(parts[0])
			case "ideograph": // no clause ends, so the request has no boundaries
				return
			}
			if got.Intent != "code_review" || got.Confidence < lexical.MinActionConfidence {
				t.Errorf("got %+v, want code_review", got)
			}
		})
	}
}
