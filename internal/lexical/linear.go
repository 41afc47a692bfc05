package lexical

import (
	"math"
)

// wordNormShare is the share of the words in the squared norm of a text.
// The rest is for the n-grams.
const wordNormShare = 0.5

// linearModel is a linear model over sparse features: the score of a class is
// the sum of the weights of the features for it. A feature has weights only for
// the classes (and families) it occurs in, so that the model stays as small as
// its corpus. The other classes lose because these win.
type linearModel struct {
	idfWeights
	start  []int32  // by feature: index of its first weight; one more at the end
	class  []uint16 // by weight: a class, or classes + a family
	weight []float32
	bias   []float32
	vector vectorWeights
	// vectorLength is that of the vectors that the weights are for, relative to
	// those of a set with few examples.
	vectorLength float32
	classFamilies
}

// idfWeights are the weights of features regardless of class: inverse document frequencies.
type idfWeights struct {
	idf       []float32      // by feature; 0 if no sample of the training contains it
	unseenIDF float32        // of an unknown feature
	commonIDF float32        // of an unknown word that is a common one
	flags     []featureFlags // by feature
}

// wordShares are the squared norm of the words of a text, and the shares of some words in it.
type wordShares struct {
	squaredNorm float32
	unknown     float32 // words that the corpus does not contain
	stop        float32 // stop words
	domain      float32 // words of domain names
}

// unknownCount counts the features of a text that the corpus does not contain.
type unknownCount struct {
	words  int // without common ones
	common int // of common words
	ngrams int
}

// weighText computes the values of the features of a text: their inverse document
// frequencies, scaled so that words and n-grams have their shares of a norm of 1.
// Unknown features count in the norm like the rarest ones, so that the known part
// of a text weighs less if more of it is unknown. The first features are words,
// as many as given; the rest are n-grams.
func (w *idfWeights) weighText(values []float32, features []int32, words int, unknown unknownCount) ([]float32, wordShares) {
	values = values[:0]
	rarest, common := w.unseenIDF*w.unseenIDF, w.commonIDF*w.commonIDF
	var known [2]float32
	var stop, domain float32
	for i, f := range features {
		v := w.idf[f]
		values = append(values, v)
		block := 0
		if i >= words {
			block = 1
		} else if flag := w.flags[f]; flag&flagDomain != 0 {
			domain += v * v
		} else if flag&flagStop != 0 {
			stop += v * v
		}
		known[block] += v * v
		switch {
		case v > 0:
		case block == 1:
			unknown.ngrams++
		case w.flags[f]&flagCommon != 0:
			unknown.common++
		default:
			unknown.words++
		}
	}
	missing := float32(unknown.words)*rarest + float32(unknown.common)*common
	lengths := [2]float32{known[0] + missing, known[1] + float32(unknown.ngrams)*rarest}
	var scale [2]float32
	share := [2]float32{wordNormShare, 1 - wordNormShare}
	for block, length := range lengths {
		if length > 0 {
			scale[block] = float32(math.Sqrt(float64(share[block] / length)))
		}
	}
	for i := range values[:words] {
		values[i] *= scale[0]
	}
	for i := words; i < len(values); i++ {
		values[i] *= scale[1]
	}
	m := wordShares{squaredNorm: lengths[0]}
	if m.squaredNorm > 0 {
		m.unknown, m.stop, m.domain = missing/m.squaredNorm, stop/m.squaredNorm, domain/m.squaredNorm
	}
	return values, m
}

// scoreClasses adds up the weights in scores, which has an entry for each class
// and family.
func (l *linearModel) scoreClasses(scores []float32, features []int32, values []float32) {
	copy(scores, l.bias)
	clear(scores[len(l.bias):])
	for i, f := range features {
		v := values[i]
		if v == 0 {
			continue
		}
		from, to := l.start[f], l.start[f+1]
		classes := l.class[from:to]
		weights := l.weight[from:to][:len(classes)]
		for k, c := range classes {
			scores[c] += v * weights[k]
		}
	}
	if l.count > 0 {
		classes := len(l.bias)
		for c, g := range l.of {
			scores[c] += scores[classes+int(g)]
		}
	}
}
