package lexical

import (
	"math"

	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/wordvectors"
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

const (
	// maxWeights bounds a quantized model. The weights with the least effect on
	// a score are dropped.
	maxWeights = 500_000
	// negligibleChange is a change of a score, before normalization by the
	// text's length, that is too small to store.
	negligibleChange = 0.6
	// fixedPointOne is the scale of fixed-point sums: scores are summed as
	// integers, so that the result does not depend on the order.
	fixedPointOne = 1 << 20
	// maxQuantized is the greatest quantized weight.
	maxQuantized = math.MaxInt8
)

// quantizedModel is a linear model in its stored form: a byte per weight, a
// scale per feature, and no weights that would be 0.
type quantizedModel struct {
	features feature.Table
	idfWeights
	scale  []float32 // by feature: the scale of its weights, times fixedPointOne
	start  []int32
	class  []uint16
	weight []int8
	bias   []float32
	vector quantizedVectors
	classFamilies
	order *biasOrder // nil if all classes are scored
}

func (l *linearModel) quantize(features feature.Table) quantizedModel {
	c := quantizedModel{
		features: features.ShrinkToFit(), idfWeights: l.idfWeights,
		scale: make([]float32, len(l.idf)), start: make([]int32, len(l.start)),
		bias: l.bias, vector: l.vector.quantize(l.vectorLength), classFamilies: l.classFamilies,
	}
	least := max(l.minKeptChange(), negligibleChange)
	for f := range l.idf {
		from, to := l.start[f], l.start[f+1]
		top := float32(0)
		for _, w := range l.weight[from:to] {
			top = max(top, w, -w)
		}
		c.scale[f] = top / maxQuantized * fixedPointOne
		for k := from; k < to; k++ {
			w := l.weight[k]
			if q := int8(math.Round(float64(w / top * maxQuantized))); q != 0 && max(w, -w)*l.idf[f] >= least {
				c.class = append(c.class, l.class[k])
				c.weight = append(c.weight, q)
			}
		}
		c.start[f+1] = int32(len(c.weight))
	}
	c.class, c.weight = append([]uint16(nil), c.class...), append([]int8(nil), c.weight...)
	return c
}

// minKeptChange returns the change of a score that a weight must cause to be
// among maxWeights, to a hundredth of the greatest.
func (l *linearModel) minKeptChange() float32 {
	if len(l.weight) <= maxWeights {
		return 0
	}
	const steps = 2000
	effect := func(f int, w float32) float32 { return max(w, -w) * l.idf[f] }
	top := float32(0)
	for f := range l.idf {
		for _, w := range l.weight[l.start[f]:l.start[f+1]] {
			top = max(top, effect(f, w))
		}
	}
	if top == 0 { // the training has ended before its first step
		return 0
	}
	var count [steps + 1]int
	for f := range l.idf {
		for _, w := range l.weight[l.start[f]:l.start[f+1]] {
			count[int(effect(f, w)/top*steps)]++
		}
	}
	kept := 0
	for step := steps; step > 0; step-- {
		if kept += count[step]; kept > maxWeights {
			return float32(step+1) / steps * top
		}
	}
	return 0
}

// prepare derives from the weights what makes scoring fast.
func (c *quantizedModel) prepare() {
	c.listMembers()
	if len(c.bias) >= minSparseClasses && len(c.first) > 2 {
		c.order = newBiasOrder(c.bias)
	}
}

// scoreClasses scores the classes by way of sums, which has an entry for each class and family.
func (c *quantizedModel) scoreClasses(x *classScores, sums []int32, features []int32, values []float32) {
	clear(sums)
	for i, f := range features {
		step := int32(values[i] * c.scale[f])
		from, to := c.start[f], c.start[f+1]
		classes := c.class[from:to]
		weights := c.weight[from:to][:len(classes)]
		for k, class := range classes {
			sums[class] += step * int32(weights[k])
		}
	}
	if c.order != nil {
		c.chooseCandidates(x, sums)
		return
	}
	classes := len(c.bias)
	for i, s := range sums {
		x.values[i] = float32(s) * (1.0 / fixedPointOne)
	}
	for i, b := range c.bias {
		x.values[i] += b
		if c.count > 0 {
			x.values[i] += x.values[classes+int(c.of[i])]
		}
	}
}

// minSparseClasses is the number of classes from which those without a feature of the text are
// left out.
const minSparseClasses = 512

// chooseCandidates scores the classes that may be best: those with a sum, those of a family
// with one, the likeliest others, and the family of the best.
func (c *quantizedModel) chooseCandidates(x *classScores, sums []int32) {
	classes := len(c.bias)
	x.order = c.order
	x.marked = append(x.marked[:0], make([]uint64, (classes+63)/64)...)
	for class, s := range sums[:classes] {
		if s != 0 {
			x.mark(int32(class))
		}
	}
	for g, s := range sums[classes:] {
		x.values[classes+g] = float32(s) * (1.0 / fixedPointOne)
		if s != 0 {
			for _, class := range c.members[c.first[g]:c.first[g+1]] {
				x.mark(class)
			}
		}
	}
	if x.required >= 0 {
		x.mark(x.required)
		for _, class := range c.membersWith(int(x.required)) {
			x.mark(class)
		}
	}
	c.markLikeliest(x)
	best := int32(-1)
	x.listMarked()
	for _, class := range x.candidates {
		x.values[class] = float32(sums[class])*(1.0/fixedPointOne) + c.bias[class]
		if c.count > 0 {
			x.values[class] += x.values[classes+int(c.of[class])]
		}
		if best < 0 || x.values[class] > x.values[best] {
			best = class
		}
	}
	for _, class := range c.membersWith(int(best)) {
		if !x.isMarked(class) {
			x.mark(class)
			x.values[class] = c.bias[class] // it has no sum, nor has its family
		}
	}
	x.listMarked()
}

// markLikeliest marks the classes with the greatest biases among those that are not marked:
// enough for the alternatives, and from at least two families, so that one of them is not
// tied with the best.
func (c *quantizedModel) markLikeliest(x *classScores) {
	marked, family, several := 0, int32(-1), false
	for _, class := range c.order.classes {
		if marked > maxAlternatives && several {
			return
		}
		if x.isMarked(class) {
			continue
		}
		x.mark(class)
		marked++
		if family < 0 {
			family = c.of[class]
		}
		several = several || c.of[class] != family
	}
}

// sizeBytes returns the size of the model.
func (c *quantizedModel) sizeBytes() int {
	return 8*len(c.features.Entries) + 3*len(c.weight) + 4*(len(c.idf)+len(c.scale)+len(c.start)+len(c.bias)+len(c.of)) + len(c.flags) + c.vector.sizeBytes()
}

const (
	// vectorShare is the squared length of the vector of a text. Its words and n-grams have
	// a length of 1 together.
	vectorShare = 0.4
	// vectorShrinkage makes the vector of few words shorter: it is added to the length of
	// their sum, in words.
	vectorShrinkage = 0.3
	// fullVectorExamples is the mean number of examples of an intent up to which vectors
	// count fully, and noVectorExamples that from which they do not count: so many examples
	// show by themselves which words mean the same.
	fullVectorExamples, noVectorExamples = 8.0, 12.0
	// vectorOne is the scale of fixed-point vectors.
	vectorOne = 1 << 12
)

// textVector is the vector of a text: the sum of the vectors of its words, of about length
// 1 if these are similar to each other or many.
type textVector [wordvectors.Dimensions]float32

// vectorScale returns the factor of a sum in a textVector.
func vectorScale(sum *wordvectors.Sum) float32 {
	return float32(math.Sqrt(vectorShare) / (sum.Length() + vectorShrinkage*wordvectors.Length))
}

func newTextVector(sum *wordvectors.Sum, length float32) (v textVector) {
	scale := vectorScale(sum) * length
	for k, x := range sum {
		v[k] = float32(x) * scale
	}
	return v
}

// newVectorLength returns the length of the vectors of texts, relative to that of a set with
// few examples; 0 if vectors are no features. The training of a large set would take much
// longer with them.
func newVectorLength(list []trainingText, classes int) float32 {
	if len(list) > maxSmallSet || classes >= minSparseClasses {
		return 0
	}
	examples := 0.0
	for i := range list {
		if list[i].kind == kindExample {
			examples++
		}
	}
	share := (noVectorExamples - examples/float64(max(classes, 1))) / (noVectorExamples - fullVectorExamples)
	return float32(math.Sqrt(max(0, min(1, share))))
}

// vectorWeights has a weight by class and dimension; it is empty if vectors are no features.
type vectorWeights []textVector

// addScores adds what a vector contributes to the scores of the classes.
func (w vectorWeights) addScores(scores []float32, v *textVector) {
	for c := range w {
		sum := float32(0)
		for k, x := range v {
			sum += x * w[c][k]
		}
		scores[c] += sum
	}
}

// applySteps adds the gradient steps of the classes to the weights.
func (w vectorWeights) applySteps(steps []float32, v *textVector) {
	for c := range w {
		for k, x := range v {
			w[c][k] += x * steps[c]
		}
	}
}

// quantizedVectors are vectorWeights in their stored form: a byte per weight, a scale per
// class. Sums are integers, so that the result does not depend on the processor.
type quantizedVectors struct {
	weight []int8 // by class and dimension
	scale  []float32
}

// quantize returns the weights for vectors of length 1.
func (w vectorWeights) quantize(length float32) quantizedVectors {
	q := quantizedVectors{weight: make([]int8, 0, len(w)*wordvectors.Dimensions), scale: make([]float32, len(w))}
	for c := range w {
		top := float32(0)
		for _, x := range w[c] {
			top = max(top, x, -x)
		}
		q.scale[c] = top / maxQuantized * length
		for _, x := range w[c] {
			if top > 0 {
				x = x / top * maxQuantized
			}
			q.weight = append(q.weight, int8(math.Round(float64(x))))
		}
	}
	return q
}

// addScores adds what the vector of a text contributes to the scores of the classes.
func (q *quantizedVectors) addScores(scores []float32, sum *wordvectors.Sum) {
	if len(q.scale) == 0 {
		return
	}
	var fixed [wordvectors.Dimensions]int32
	toFixed := vectorScale(sum) * vectorOne
	for k, x := range sum {
		fixed[k] = int32(float32(x) * toFixed)
	}
	for c, scale := range q.scale {
		scores[c] += float32(q.dotProduct(c, &fixed)) * (scale / vectorOne)
	}
}

func (q *quantizedVectors) dotProduct(class int, v *[wordvectors.Dimensions]int32) int32 {
	sum := int32(0)
	weight := q.weight[class*wordvectors.Dimensions:][:wordvectors.Dimensions]
	for k, x := range v {
		sum += x * int32(weight[k])
	}
	return sum
}

// contribution returns what a part of the sum of a text contributes to the score of a
// class. sumScale is the vectorScale of the whole sum.
func (q *quantizedVectors) contribution(class int, part *wordvectors.Sum, sumScale float32) float32 {
	if class < 0 || len(q.scale) == 0 {
		return 0
	}
	dot := int64(0) // the sum of a long text is large
	for k, w := range q.weight[class*wordvectors.Dimensions:][:wordvectors.Dimensions] {
		dot += int64(part[k]) * int64(w)
	}
	return float32(dot) * q.scale[class] * sumScale
}

func (q *quantizedVectors) sizeBytes() int { return len(q.weight) + 4*len(q.scale) }
