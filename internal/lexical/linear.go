package lexical

import (
	"math"
	"slices"
)

// wordLengthShare is how much of a text's squared length its words have; its n-grams
// have the rest.
const wordLengthShare = 0.5

// linearModel is a linear model over sparse features: the score of a class is the sum
// of the weights its features have for it. A feature has weights only for classes
// it was seen in (and for the groups of these): all other classes are pushed down
// by what pushes these up, and the model stays as small as its corpus.
type linearModel struct {
	rarity       []float32 // by feature: how much its being there says; 0 = never seen
	unseenRarity float32   // of a feature that is not known
	start        []int32   // by feature: where its weights begin; one more at the end
	class        []uint16  // of a weight: a class, or classes + a group
	weight       []float32
	bias         []float32
	family       []int32 // by class
	families     int
}

// weighFeatures weighs the features of a text in values: rarity, scaled so that words
// and n-grams have their shares of a length of 1. Features that are not known
// count in the length as the rarest ones do: the less of a text is known, the
// less its known part says. It returns the unknown share of the words.
func weighFeatures(values, rarity []float32, rarest float32, features []int32, words int, unknown [2]int) ([]float32, float32) {
	values = values[:0]
	var known [2]float32
	for i, f := range features {
		v := rarity[f]
		values = append(values, v)
		block := 0
		if i >= words {
			block = 1
		}
		known[block] += v * v
		if v == 0 {
			unknown[block]++
		}
	}
	var scale [2]float32
	share := [2]float32{wordLengthShare, 1 - wordLengthShare}
	for block := range scale {
		if length := known[block] + float32(unknown[block])*rarest*rarest; length > 0 {
			scale[block] = float32(math.Sqrt(float64(share[block] / length)))
		}
	}
	for i := range values[:words] {
		values[i] *= scale[0]
	}
	for i := words; i < len(values); i++ {
		values[i] *= scale[1]
	}
	missing := float32(unknown[0]) * rarest * rarest
	if missing == 0 {
		return values, 0
	}
	return values, missing / (known[0] + missing)
}

// scoreClasses sums up the weights, in scores, which has room for classes and groups.
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
	if l.families > 0 {
		classes := len(l.bias)
		for c, g := range l.family {
			scores[c] += scores[classes+int(g)]
		}
	}
}

// softmax turns the scores into probabilities, in place.
func softmax(scores []float32) {
	top, sum := slices.Max(scores), float32(0)
	for c, s := range scores {
		scores[c] = fastExp(s - top)
		sum += scores[c]
	}
	whole := 1 / sum
	for c := range scores {
		scores[c] *= whole
	}
}

// fastExp is e to the x for x of at most 0, within 1e-4 of it: 2 to the whole part is
// an exponent, 2 to the rest a polynomial. math.Exp takes ten times as long, and
// training calls it for every class and example.
func fastExp(x float32) float32 {
	if x < -20 {
		return 0
	}
	y := x * math.Log2E
	whole := float32(int32(y)) - 1 // below y, which is negative
	part := y - whole
	p := 1 + part*(0.6951786+part*(0.22764444+part*0.07717702))
	return p * math.Float32frombits(uint32(int32(whole)+127)<<23)
}
