package lexical

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// classScores are the scores of the classes for a text and, after rankScores, their
// probabilities.
type classScores struct {
	values []float32 // by class, then by family; of the candidates alone
	// candidates are the classes to be compared, in order: all classes, or those that a
	// feature of the text has a weight for, with the likeliest of the others (biasOrder).
	candidates []int32
	order      *biasOrder // of the classes that are no candidates; nil if there are none
	marked     []uint64   // the set of the candidates
	required   int32      // a class that is a candidate in any case; -1 if there is none
	next       []int32    // of runnersUp
}

// newClassScores returns scores of which all classes are candidates.
func newClassScores(classes, families int) classScores {
	x := classScores{values: make([]float32, classes+families), candidates: make([]int32, classes), required: -1}
	for c := range x.candidates {
		x.candidates[c] = int32(c)
	}
	return x
}

func (x *classScores) mark(class int32) { x.marked[class>>6] |= 1 << (class & 63) }

func (x *classScores) isMarked(class int32) bool { return x.marked[class>>6]>>(class&63)&1 != 0 }

// listMarked makes the marked classes the candidates.
func (x *classScores) listMarked() {
	x.candidates = x.candidates[:0]
	for i, word := range x.marked {
		for ; word != 0; word &= word - 1 {
			x.candidates = append(x.candidates, int32(i*64+bits.TrailingZeros64(word)))
		}
	}
}

// runnersUp returns up to limit candidates, the likeliest first, without the best class.
func (x *classScores) runnersUp(best, limit int) []int32 {
	next := x.next[:0]
	for _, c := range x.candidates {
		p := x.values[c]
		if int(c) == best || len(next) == limit && p <= x.values[next[limit-1]] {
			continue
		}
		if len(next) < limit {
			next = append(next, c)
		}
		at := len(next) - 1
		for ; at > 0 && p > x.values[next[at-1]]; at-- {
			next[at] = next[at-1]
		}
		next[at] = c
	}
	x.next = next
	return next
}

// bestCandidate returns the candidate with the greatest score, the first of equals.
func (x *classScores) bestCandidate() int {
	best := x.candidates[0]
	for _, c := range x.candidates {
		if x.values[c] > x.values[best] {
			best = c
		}
	}
	return int(best)
}

// distribution summarizes the scores and probabilities of all classes. A class is tied with
// the best if both belong to one family and its score is at most tieMargin lower.
type distribution struct {
	best, second, bestUntied float32 // scores; -Inf if there is no such class
	rest, untied             float64 // probability of all but the best, and of all that are not tied with it
	entropy                  float64
}

// minProbability is the probability from which a class counts in the entropy.
const minProbability = 1e-6

// normalize turns the scores of the candidates into probabilities in place. The sums are
// variables and not fields, which the compiler would keep in memory.
func (x *classScores) normalize(best int, families *classFamilies) distribution {
	classes := x.values[:len(families.of)]
	top, second, untiedScore, sum := classes[best], float32(math.Inf(-1)), float32(math.Inf(-1)), float32(0)
	for _, c := range x.candidates {
		s := classes[c]
		if int(c) != best {
			second = max(second, s)
			if s < top-tieMargin || !families.tie(int(c), best) {
				untiedScore = max(untiedScore, s)
			}
		}
		e := fastExp(s - top)
		classes[c] = e
		sum += e
	}
	var others otherClasses
	if x.order != nil {
		others = x.order.sumOthers(x.candidates, top, sum)
		sum += others.exp
	}
	whole := 1 / sum
	leastTied := tieRatio * (classes[best] * whole)
	entropy, rest, untied := others.entropy, others.probability, others.probability
	for _, c := range x.candidates {
		p := classes[c] * whole
		classes[c] = p
		if p > minProbability {
			entropy -= float64(p) * fastLog(p)
		}
		if int(c) != best { // summed and not 1 - p, to avoid rounding
			rest += float64(p)
			if p < leastTied || !families.tie(int(c), best) {
				untied += float64(p)
			}
		}
	}
	return distribution{best: top, second: second, bestUntied: untiedScore, rest: rest, untied: untied, entropy: entropy}
}

// softmax turns the scores into probabilities in place.
func softmax(scores []float32) {
	top, sum := scores[0], float32(0)
	for _, s := range scores { // slices.Max looks for NaN, which takes half of the time here
		if s > top {
			top = s
		}
	}
	for c, s := range scores {
		scores[c] = fastExp(s - top)
		sum += scores[c]
	}
	whole := 1 / sum
	for c := range scores {
		scores[c] *= whole
	}
}

// fastExp returns e to the x for x ≤ 0 with an error below 1e-4: 2 to the
// integer part is the exponent, 2 to the rest a polynomial. math.Exp takes ten
// times as long, and training calls it for every class and sample.
func fastExp(x float32) float32 {
	if x < -20 {
		return 0
	}
	y := x * math.Log2E
	whole := float32(int32(y)) - 1 // round down; y is negative
	part := y - whole
	p := 1 + part*(0.6951786+part*(0.22764444+part*0.07717702))
	return p * math.Float32frombits(uint32(int32(whole)+127)<<23)
}

// biasOrder sums over the classes of which a text contains no feature, without visiting them:
// their scores are their biases.
type biasOrder struct {
	classes []int32   // by descending bias
	bias    []float64 // in this order
	// exp is the sum of e to the bias of the first classes, and moment that of the bias times
	// e to the bias; one more at the end.
	exp, moment []float64
	expOf       []float64 // by class: e to the bias
	biasOf      []float64 // by class
}

func newBiasOrder(bias []float32) *biasOrder {
	o := &biasOrder{classes: make([]int32, len(bias)), exp: []float64{0}, moment: []float64{0}, expOf: make([]float64, len(bias)), biasOf: make([]float64, len(bias))}
	for c := range o.classes {
		o.classes[c] = int32(c)
	}
	slices.SortStableFunc(o.classes, func(a, b int32) int { return cmp.Compare(bias[b], bias[a]) })
	for k, c := range o.classes {
		b := float64(bias[c])
		o.biasOf[c], o.expOf[c] = b, math.Exp(b)
		o.bias = append(o.bias, b)
		o.exp = append(o.exp, o.exp[k]+o.expOf[c])
		o.moment = append(o.moment, o.moment[k]+b*o.expOf[c])
	}
	return o
}

// otherClasses are the sums over the classes that are no candidates.
type otherClasses struct {
	exp                  float32 // of e to the score, relative to the best
	probability, entropy float64
}

// sumOthers returns the sums over the classes that are no candidates. top is the best score,
// and sum that of e to the scores of the candidates, relative to the best.
func (o *biasOrder) sumOthers(candidates []int32, top, sum float32) otherClasses {
	exp := o.exp[len(o.classes)]
	for _, c := range candidates {
		exp -= o.expOf[c]
	}
	scale := math.Exp(-float64(top))
	exp = max(0, exp*scale)
	whole := float64(sum) + exp
	norm := float64(top) + math.Log(whole) // log of the probability of a class = bias - norm
	least := norm + math.Log(minProbability)
	k := sort.Search(len(o.bias), func(k int) bool { return o.bias[k] <= least })
	likely, moment := o.exp[k], o.moment[k]
	for _, c := range candidates {
		if b := o.biasOf[c]; b > least {
			likely -= o.expOf[c]
			moment -= b * o.expOf[c]
		}
	}
	return otherClasses{exp: float32(exp), probability: exp / whole, entropy: max(0, (norm*likely-moment)*scale/whole)}
}

// logSteps is the number of intervals in which fastLog looks up the logarithm.
const logSteps = 128

// logTable has the middle of each interval of [1, 2): its inverse and its logarithm.
var logTable = func() (t [logSteps]struct{ inverse, log float64 }) {
	for i := range t {
		middle := 1 + (float64(i)+0.5)/logSteps
		t[i].inverse, t[i].log = 1/middle, math.Log(middle)
	}
	return t
}()

// fastLog returns the logarithm of a positive normal number with an error below 1e-9. It takes a
// quarter of the time of math.Log, and classification calls it for every class.
func fastLog(x float32) float64 {
	bits := math.Float32bits(x)
	mantissa := math.Float32frombits(bits&(1<<23-1) | 127<<23)
	t := logTable[bits>>16&(logSteps-1)]
	d := float64(mantissa)*t.inverse - 1
	return float64(int32(bits>>23)-127)*math.Ln2 + t.log + d*(1-d*(0.5-d*(1.0/3)))
}
