package lexical

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

func vectorCorpus() Corpus {
	return Corpus{Intents: []IntentDoc{
		{Name: "get_salary", Agents: []string{"hr"}},
		{Name: "repair_laptop", Agents: []string{"it"}},
		{Name: "plan_holiday", Agents: []string{"travel"}},
		{Name: "open_warehouse", Agents: []string{"logistics"}},
	}}
}

// A word that is not in the registry counts for the intent with a similar word.
func TestClassify_SimilarWords(t *testing.T) {
	m := Train(vectorCorpus())
	for text, want := range map[string]string{
		"my wages of the month and the pay":       "get_salary",
		"the screen of my notebook computer":      "repair_laptop",
		"trips to a tropical resort by the beach": "plan_holiday",
		"pallets for the factory and depot":       "open_warehouse",
	} {
		if got := m.Classify(text); got.BestIntent != want {
			t.Errorf("%q: got %+v, want %s first", text, got, want)
		}
	}
	if got := m.Classify("the volcano erupted"); got.Confidence >= MinActionConfidence {
		t.Errorf("got %+v for a text without a similar word, want a low confidence", got)
	}
}

// Repeated words in a long text do not outweigh those of the registry.
func TestClassify_RepeatedWords(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "code_review", Agents: []string{"a"}},
		{Name: "cost_analysis", Agents: []string{"b"}},
		{Name: "log_search", Agents: []string{"c"}},
		{Name: "travel_booking", Agents: []string{"d"}},
	}})
	for _, n := range []int{0, 10, 1000, 10_000} {
		if got := m.Classify("code review of the python module" + strings.Repeat(" of the python module", n)); got.Intent != "code_review" {
			t.Errorf("%d repetitions: got %+v, want code_review", n, got)
		}
	}
}

func TestListEvidence_ListsSimilarWords(t *testing.T) {
	m := Train(vectorCorpus())
	items := m.ListEvidence("the freight depot", 8, func(intent string) bool { return intent == "open_warehouse" })
	at := slices.IndexFunc(items, func(i EvidenceItem) bool { return i.Kind == EvidenceSimilar })
	if at < 0 || items[at].Text != "warehouse" || items[at].Intent != "open_warehouse" || items[at].RequestText != "depot" && items[at].RequestText != "freight" || items[at].Strength < minSimilarity || items[at].Strength > 1 {
		t.Errorf("got %+v, want the similar word warehouse", items)
	}
	items = m.ListEvidence("the salary of a volcano", 8, func(string) bool { return true })
	if slices.ContainsFunc(items, func(i EvidenceItem) bool { return i.Kind == EvidenceSimilar }) {
		t.Errorf("got %+v, want no similar word", items)
	}
}

func TestTrain_LargeSetLearnsNoVectors(t *testing.T) {
	c := Corpus{Intents: []IntentDoc{{Name: "one"}, {Name: "two"}}}
	for i := range maxSmallSet {
		d := &c.Intents[i%2]
		d.Examples = append(d.Examples, fmt.Sprint("number ", i))
	}
	if m := Train(c); len(m.statistical.linear.vector.scale) != 0 {
		t.Error("got weights of vectors in a large set")
	}
	if m := Train(vectorCorpus()); len(m.statistical.linear.vector.scale) != 4 {
		t.Errorf("got %d scales of weights in a small set, want one by intent", len(m.statistical.linear.vector.scale))
	}
}

// A text without vectors has the score of its words.
func TestQuantizedVectors_NoVectors(t *testing.T) {
	m := Train(vectorCorpus())
	scores := make([]float32, 4)
	m.statistical.linear.vector.addScores(scores, &wordvectors.Sum{})
	if slices.ContainsFunc(scores, func(s float32) bool { return s != 0 }) {
		t.Errorf("got %v, want 0", scores)
	}
}

// Scores with quantized weights are close to the exact ones, also for a long text.
func TestQuantizedVectors_ScoreLikeWeights(t *testing.T) {
	w := make(vectorWeights, 3)
	for c := range w {
		for k := range w[c] {
			w[c][k] = float32((c+1)*(k%7-3)) / 5
		}
	}
	q := w.quantize(1)
	for _, n := range []int{1, 3, 5000} {
		f := feature.Extractor{HasVectors: true}
		tokens := token.NewScanner()
		f.Extract(&tokens, strings.Repeat("invoice salary laptop ", n))
		v := newTextVector(&f.Vector, 1)
		exact, got := make([]float32, 3), make([]float32, 3)
		w.addScores(exact, &v)
		q.addScores(got, &f.Vector)
		for c := range exact {
			if d := exact[c] - got[c]; d > 0.02 || d < -0.02 {
				t.Errorf("%d words, class %d: got %v, want about %v", 3*n, c, got[c], exact[c])
			}
		}
	}
}
