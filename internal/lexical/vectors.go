package lexical

import (
	"math"

	"github.com/caprouter/caprouter/internal/wordvectors"
)

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
