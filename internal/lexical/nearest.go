package lexical

import (
	"math"
)

// maxExamplesCompared bounds the examples of an intent that a text is compared
// with, so that the cost does not grow with the examples. They are spread over
// all of them.
const maxExamplesCompared = 32

// declaredTexts are the texts of the corpus by class, as features, to compare a
// text with: how similar is the nearest example, how much of the name does the
// text contain, does it contain a keyword.
type declaredTexts struct {
	start    []int32 // by class: index of its first text; one more at the end
	texts    []declaredText
	features []int32
}

// declaredText refers to the features of a text in declaredTexts.features: of a
// name or keyword its stems, of an example all features of its words.
type declaredText struct {
	from, to int32
	sample   int32 // number in the training set
	kind     textKind
}

// textSimilarity is the similarity of a text to the texts of one class.
type textSimilarity struct {
	nearest float64 // cosine to the nearest example, over words
	shared  float64 // number of features shared with the nearest example or name
	name    float64 // share of the name, by weight, that the text contains
	keyword bool    // the text contains a keyword that no other agent declares
}

// newDeclaredTexts collects the texts to compare with, of samples ordered by
// class within their family.
func newDeclaredTexts(d *trainingSet) declaredTexts {
	count := make([]int, d.classes) // of examples
	order := make([][]int32, d.classes)
	for i := range d.samples {
		s := &d.samples[i]
		switch s.kind {
		case kindExample:
			count[s.class]++
		case kindName, kindKeyword:
		case kindDescription, kindNotFor:
			continue
		}
		order[s.class] = append(order[s.class], int32(i))
	}
	x := declaredTexts{start: make([]int32, d.classes+1)}
	for class, samples := range order {
		place := 0 // among the examples
		for _, i := range samples {
			s := &d.samples[i]
			features := s.stems
			if s.kind == kindExample {
				place++
				n := count[class]
				if place*min(n, maxExamplesCompared)/n == (place-1)*min(n, maxExamplesCompared)/n {
					continue
				}
				features = s.features[:s.words]
			}
			if len(features) == 0 || s.kind == kindKeyword && !s.exclusive {
				continue
			}
			from := int32(len(x.features))
			x.features = append(x.features, features...)
			x.texts = append(x.texts, declaredText{from: from, to: int32(len(x.features)), sample: i, kind: s.kind})
		}
		x.start[class+1] = int32(len(x.texts))
	}
	return x
}

// compare returns the similarity of a text to a class. The features of the text are those for
// which seen has the generation; squaredNorm is that of its words. Samples for which skip
// returns true are ignored; skip may be nil.
func (x *declaredTexts) compare(class int, idf []float32, seen []uint32, generation uint32, squaredNorm float32, skip func(sample int32) bool) textSimilarity {
	var l textSimilarity
	for i := x.start[class]; i < x.start[class+1]; i++ {
		t := &x.texts[i]
		if skip != nil && t.kind == kindExample && skip(t.sample) {
			continue
		}
		var common, whole float32
		shared := 0
		for _, f := range x.features[t.from:t.to] {
			r := idf[f] * idf[f]
			whole += r
			if seen[f] == generation {
				common += r
				shared++
			}
		}
		if common == 0 {
			continue
		}
		l.shared = max(l.shared, float64(shared))
		switch t.kind {
		case kindExample:
			l.nearest = max(l.nearest, float64(common)/math.Sqrt(float64(whole)*float64(max(squaredNorm, common))))
		case kindName:
			l.name = max(l.name, float64(common/whole))
		case kindKeyword:
			l.keyword = l.keyword || shared == int(t.to-t.from)
		case kindDescription, kindNotFor:
		}
	}
	return l
}

func (x *declaredTexts) sizeBytes() int { return 4*(len(x.start)+len(x.features)) + 16*len(x.texts) }
