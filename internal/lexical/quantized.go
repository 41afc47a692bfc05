package lexical

import (
	"math"

	"github.com/caprouter/caprouter/internal/lexical/feature"
)

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
