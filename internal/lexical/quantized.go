package lexical

import "math"

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
	features featureTable
	featureWeights
	unit   []float32 // by feature: the scale of its weights, times fixedPointOne
	start  []int32
	class  []uint16
	weight []int8
	bias   []float32
	classFamilies
}

func (l *linearModel) quantize(features featureTable) quantizedModel {
	c := quantizedModel{
		features: features.shrinkToFit(), featureWeights: l.featureWeights,
		unit: make([]float32, len(l.rarity)), start: make([]int32, len(l.start)),
		bias: l.bias, classFamilies: l.classFamilies,
	}
	least := max(l.minKeptChange(), negligibleChange)
	for f := range l.rarity {
		from, to := l.start[f], l.start[f+1]
		top := float32(0)
		for _, w := range l.weight[from:to] {
			top = max(top, w, -w)
		}
		c.unit[f] = top / maxQuantized * fixedPointOne
		for k := from; k < to; k++ {
			w := l.weight[k]
			if q := int8(math.Round(float64(w / top * maxQuantized))); q != 0 && max(w, -w)*l.rarity[f] >= least {
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
	move := func(f int, w float32) float32 { return max(w, -w) * l.rarity[f] }
	top := float32(0)
	for f := range l.rarity {
		for _, w := range l.weight[l.start[f]:l.start[f+1]] {
			top = max(top, move(f, w))
		}
	}
	var count [steps + 1]int
	for f := range l.rarity {
		for _, w := range l.weight[l.start[f]:l.start[f+1]] {
			count[int(move(f, w)/top*steps)]++
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

// scoreClasses adds up the weights in scores by way of sums. Both have an entry
// for each class and family.
func (c *quantizedModel) scoreClasses(scores []float32, sums []int32, features []int32, values []float32) {
	clear(sums)
	for i, f := range features {
		step := int32(values[i] * c.unit[f])
		from, to := c.start[f], c.start[f+1]
		classes := c.class[from:to]
		weights := c.weight[from:to][:len(classes)]
		for k, class := range classes {
			sums[class] += step * int32(weights[k])
		}
	}
	classes := len(c.bias)
	for i, s := range sums {
		scores[i] = float32(s) * (1.0 / fixedPointOne)
	}
	for i, b := range c.bias {
		scores[i] += b
		if c.count > 0 {
			scores[i] += scores[classes+int(c.of[i])]
		}
	}
}

// sizeBytes returns the size of the model.
func (c *quantizedModel) sizeBytes() int {
	return 8*len(c.features.slots) + 3*len(c.weight) + 4*(len(c.rarity)+len(c.unit)+len(c.start)+len(c.bias)+len(c.of)) + len(c.flags)
}
