package lexical

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/lexical/token"
)

// indexCorpus has many examples that share two words and have four words of their own.
func indexCorpus(examples int) Corpus {
	d := IntentDoc{Name: "order_status", Keywords: []string{"parcel tracking"}}
	for i := range examples {
		d.Examples = append(d.Examples, fmt.Sprintf("please show order item%d lane%d crate%d dock%d", i, i, i, i))
	}
	return Corpus{Intents: []IntentDoc{d, {Name: "code_review"}}, Domains: []string{"kb_internal", "internal_wiki", "docs"}}
}

// TestIndex_CommonWordHasFewPostings checks that a word of every example is indexed only for
// patterns that need it, so that its cost does not grow.
func TestIndex_CommonWordHasFewPostings(t *testing.T) {
	for _, examples := range []int{10, 1000} {
		m := Train(indexCorpus(examples))
		for word, want := range map[string]int{
			"show":  0, // in every example, next to rarer words
			"order": 1, // the same, but half of the name
			"item7": 1,
			"code":  1,
		} {
			if got := len(m.posts[m.words[token.StemOf(word)]]); got != want {
				t.Errorf("%d examples: got %s in %d patterns, want %d", examples, word, got, want)
			}
		}
	}
}

// TestIndex_CandidatePatterns checks the patterns that a text is compared with.
func TestIndex_CandidatePatterns(t *testing.T) {
	m := Train(indexCorpus(100))
	for text, want := range map[string]int{
		"show the order of item7":          2, // the name and one example
		"show item7 and item8 and item7":   2,
		"parcel tracking":                  1,
		"parcel":                           1, // first of two equally rare words
		"tracking":                         0,
		"tell me a joke, please":           0,
		strings.Repeat("show order ", 100): 1,
	} {
		r := m.analyzeText(text)
		if got := len(r.candidatePatterns()); got != want {
			t.Errorf("%.40q: got %d patterns, want %d", text, got, want)
		}
		m.analyses.Put(r)
	}
}

// TestIndex_Weights checks that words of fewer intents have a larger weight, and that stop words
// and repetitions have none.
func TestIndex_Weights(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "code_review", Examples: []string{"review the code", "review the review"}},
		{Name: "plan_review"},
		{Name: "cost_report"},
	}})
	weight := func(word string) float64 { return m.info[m.words[token.StemOf(word)]].weight }
	if weight("code") <= weight("review") {
		t.Errorf("got weight %v of code, want more than the %v of review", weight("code"), weight("review"))
	}
	if weight("code") != m.unknownWeight {
		t.Errorf("got weight %v of a word of one intent, want that of an unknown word, %v", weight("code"), m.unknownWeight)
	}
	once, often := m.analyzeText("review"), m.analyzeText("the review of a review and reviews")
	if once.weight != often.weight {
		t.Errorf("got weight %v of the repeated word, want %v", often.weight, once.weight)
	}
}

// TestClassify_Allocations checks that analysis and scoring do not allocate, independent of the
// sizes. (Classify allocates its results.)
func TestClassify_Allocations(t *testing.T) {
	m := Train(indexCorpus(1000))
	r := m.analyzeText("")
	for name, text := range map[string]string{
		"short":   "show the order status of item7 in the docs",
		"long":    strings.Repeat("show the order status of item7 in the docs. ", 500),
		"Unicode": "Revisão do código, análise — 审查代码 İstanbul ﬁle",
		"nothing": "tell me a joke",
		"code":    "order status\n```\n" + strings.Repeat("item7\n", 500),
	} {
		work := func() {
			r.analyze(text)
			for _, i := range r.candidatePatterns() {
				r.measureOverlap(&m.patterns[i])
			}
			m.statistical.scoreText(&r.scratch, r.generation)
		}
		work() // grows the buffers
		if got := testing.AllocsPerRun(20, work); got != 0 {
			t.Errorf("%s: got %v allocations, want none", name, got)
		}
	}
}

// TestClassify_Concurrent checks that a model is safe for concurrent use.
func TestClassify_Concurrent(t *testing.T) {
	m := Train(indexCorpus(100))
	texts := []string{"show order item7 now7", "code review of docs", "kb internal wiki", "审查代码", "tell me a joke"}
	var want []Prediction
	for _, text := range texts {
		want = append(want, m.Classify(text))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				for i, text := range texts {
					if diff := cmp.Diff(want[i], m.Classify(text)); diff != "" {
						t.Errorf("%q (-alone +among others):\n%s", text, diff)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// TestIndex_DomainPostings checks domains that share a word, and their order.
func TestIndex_DomainPostings(t *testing.T) {
	m := Train(indexCorpus(1))
	for text, want := range map[string]string{
		"kb internal":             "kb_internal",
		"internal kb wiki":        "internal_wiki kb_internal", // both start with internal: ordered by name
		"wiki, docs, internal":    "internal_wiki docs",
		"docs internal wiki kb":   "docs internal_wiki kb_internal",
		"internal":                "",
		"kbinternal internalwiki": "kb_internal internal_wiki",
		"kb-internal kbinternal":  "kb_internal",
	} {
		if got := strings.Join(m.Classify(text).Domains, " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
