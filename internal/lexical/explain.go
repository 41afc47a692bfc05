package lexical

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// Explanation lists the evidence for a prediction.
type Explanation struct {
	Intent     string // the best one, even if rejected
	Confidence float64
	// Against is the second best intent, which the features are compared with;
	// "" if there is none.
	Against string
	// Features are the words and pairs of words with the greatest weights for
	// Intent or, if negative, against it; the greatest first.
	Features []Feature
	// Examples are the examples of Intent that are most similar to the text.
	Examples []string
	// Evidence are the declared texts that speak for Intent or Against, the
	// strongest first.
	Evidence []EvidenceItem
	// Unknown are the words that the corpus does not contain, without numerals.
	Unknown []string
}

// Feature is a word or a pair of words with its weight.
type Feature struct {
	Text   string
	Weight float64
}

const (
	maxFeatures = 8
	maxExamples = 3
	maxEvidence = 8
)

// Explain returns the evidence for a classification. It is slower than
// Classify, and allocates.
func (m *Model) Explain(text string) Explanation {
	p := m.Classify(text)
	e := Explanation{Intent: p.BestIntent, Confidence: p.Confidence}
	for _, a := range p.Alternatives {
		if a.Intent != p.BestIntent {
			e.Against = a.Intent
			break
		}
	}
	e.Examples = m.NearestExamples(text, maxExamples, func(intent, _ string) bool { return intent == p.BestIntent })
	e.Evidence = m.ListEvidence(text, maxEvidence, func(intent string) bool { return intent == p.BestIntent || intent == e.Against })
	weights := map[string]float64{}
	w := token.NewScanner()
	w.Labels = m.labelsIgnoredIn(text)
	for w.Reset(text); w.Next(); {
		if w.Label != nil {
			continue
		}
		word := string(w.Word)
		if _, known := m.words[string(token.Stem(token.FoldNumber(w.Word)))]; !known && !feature.IsNumeral(w.Word) && !slices.Contains(e.Unknown, word) {
			e.Unknown = append(e.Unknown, word)
		}
	}
	if p.BestIntent != "" {
		m.addFeatureWeights(text, m.intentNumber(p.BestIntent), m.intentNumber(e.Against), weights)
	}
	for text, weight := range weights {
		e.Features = append(e.Features, Feature{text, weight})
	}
	slices.SortFunc(e.Features, func(a, b Feature) int {
		return cmp.Or(cmp.Compare(max(b.Weight, -b.Weight), max(a.Weight, -a.Weight)), strings.Compare(a.Text, b.Text))
	})
	e.Features = e.Features[:min(len(e.Features), maxFeatures)]
	return e
}

// ListLearned returns up to limit words of the text, or pairs of words, with the greatest weights
// for the intent rather than against, which may be "". It is slower than Classify, and allocates.
func (m *Model) ListLearned(text, intent, against string, limit int) (items []EvidenceItem) {
	class := m.intentNumber(intent)
	if class < 0 {
		return nil
	}
	weights, total := map[string]float64{}, 0.0
	m.addFeatureWeights(text, class, m.intentNumber(against), weights)
	for word, weight := range weights {
		if weight > 0 {
			total += weight
			items = append(items, EvidenceItem{Kind: EvidenceLearned, Text: word, Intent: intent, Strength: weight})
		}
	}
	slices.SortFunc(items, func(a, b EvidenceItem) int {
		return cmp.Or(cmp.Compare(b.Strength, a.Strength), strings.Compare(a.Text, b.Text))
	})
	items = items[:min(len(items), limit)]
	for i := range items {
		items[i].Strength = roundConfidence(items[i].Strength / total)
	}
	return items
}

// labelsIgnoredIn returns the labels that are not read in the text.
func (m *Model) labelsIgnoredIn(text string) *token.Labels {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	return r.tokens.Labels
}

func (m *Model) intentNumber(name string) int {
	if i, ok := slices.BinarySearch(m.intents, name); ok {
		return i
	}
	return -1
}

// addFeatureWeights adds to weights what each word and pair of words
// contributes to the score of one class, minus its contribution to another. The
// n-grams of a word and its vector count as the word.
func (m *Model) addFeatureWeights(text string, class, against int, weights map[string]float64) {
	s := m.statistical
	x := s.newScratch()
	owners := extractOwners(&x.features, text, m.labelsIgnoredIn(text))
	s.scoreText(&x, 1)
	at := map[int32]int{}
	for i, f := range x.known {
		at[f] = i
	}
	for i, h := range slices.Concat(x.features.Words, x.features.Ngrams) {
		f := s.linear.features.Lookup(h)
		place, ok := at[f]
		if f < 0 || !ok {
			continue
		}
		delete(at, f) // counted once
		if d := s.linear.classWeight(f, class) - s.linear.classWeight(f, against); d != 0 {
			weights[owners.features[i]] += float64(x.values[place] * d)
		}
	}
	scale := vectorScale(&x.features.Vector)
	for word, v := range owners.vectors {
		if d := s.linear.vector.contribution(class, v, scale) - s.linear.vector.contribution(against, v, scale); d != 0 {
			weights[word] += float64(d)
		}
	}
}

// featureOwners are the words that features come from.
type featureOwners struct {
	features []string                    // a word or a pair of words by feature: those of words, then n-grams
	vectors  map[string]*wordvectors.Sum // by word: its part of the vector of the text
}

// extractOwners extracts the features of a text without labels, and records their words.
func extractOwners(f *feature.Extractor, text string, labels *token.Labels) featureOwners {
	o := featureOwners{vectors: map[string]*wordvectors.Sum{}}
	var grams []string
	w := token.NewScanner()
	w.Labels = labels
	f.Reset()
	previous := ""
	for w.Reset(text); w.Next(); {
		if w.Label != nil {
			continue
		}
		word := string(w.Word)
		words, ngrams := len(f.Words), len(f.Ngrams)
		f.AddWord(w.Word)
		stem := token.Stem(token.FoldNumber(w.Word))
		f.AddStem(stem)
		sum := f.Vector
		f.AddVector([]byte(word), stem)
		if o.vectors[word] == nil {
			o.vectors[word] = &wordvectors.Sum{}
		}
		for k, v := range f.Vector {
			o.vectors[word][k] += v - sum[k]
		}
		for i := words; i < len(f.Words); i++ {
			if i == words+2 && previous != "" { // word, stem, pair
				o.features = append(o.features, previous+" "+word)
			} else {
				o.features = append(o.features, word)
			}
		}
		for range len(f.Ngrams) - ngrams {
			grams = append(grams, word)
		}
		previous = word
	}
	o.features = append(o.features, grams...)
	return o
}

// classWeight returns the weight of a feature for a class, including that of
// its family.
func (c *quantizedModel) classWeight(feature int32, class int) float32 {
	if class < 0 {
		return 0
	}
	family := -1
	if c.count > 0 {
		family = len(c.bias) + int(c.of[class])
	}
	sum := float32(0)
	for k := c.start[feature]; k < c.start[feature+1]; k++ {
		if of := int(c.class[k]); of == class || of == family {
			sum += float32(c.weight[k]) * c.scale[feature] / fixedPointOne
		}
	}
	return sum
}
