package lexical

import "math"

const (
	// maxWeights bounds a compact model. What is beyond it are the weights that
	// move a score least.
	maxWeights = 500_000
	// negligibleChange is a move of a score, before the text's length is divided out,
	// that is not worth its place.
	negligibleChange = 0.6
	// fixedPointOne is how far a sum of weights is shifted: scores are summed up as whole
	// numbers, in any order with the same result.
	fixedPointOne = 1 << 20
	// maxQuantized is the greatest weight of a byte.
	maxQuantized = math.MaxInt8
)

// quantizedModel is a linear model as it is kept: of every weight a byte, of which each
// feature has its own unit, and no weight that would be 0.
type quantizedModel struct {
	features     featureTable
	rarity       []float32 // as in linear
	unseenRarity float32
	unit         []float32 // by feature: what one step of its weights is, times fixed
	start        []int32
	class        []uint16
	weight       []int8
	bias         []float32
	family       []int32
	families     int
}

func (l *linearModel) quantize(features featureTable) quantizedModel {
	c := quantizedModel{
		features: features.shrinkToFit(), rarity: l.rarity, unseenRarity: l.unseenRarity,
		unit: make([]float32, len(l.rarity)), start: make([]int32, len(l.start)),
		bias: l.bias, family: l.family, families: l.families,
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

// minKeptChange is what a weight must be able to move a score by to be among
// mostWeights, to a hundredth of the greatest move.
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

// scoreClasses sums up the weights, in scores, by way of sums, which both have room for
// classes and groups.
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
		if c.families > 0 {
			scores[i] += scores[classes+int(c.family[i])]
		}
	}
}

// sizeBytes is the size of the model.
func (c *quantizedModel) sizeBytes() int {
	return 8*len(c.features.slots) + 3*len(c.weight) + 4*(len(c.rarity)+len(c.unit)+len(c.start)+len(c.bias)+len(c.family))
}
