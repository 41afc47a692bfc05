package lexical

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// confidenceFeatures are the inputs of the confidence model: properties of a
// prediction that correlate with its being correct.
type confidenceFeatures [featCount]float64

const (
	featConstant       = iota // 1, for the constant term
	featLogOdds               // log odds of the best class
	featMargin                // best score minus second best
	featScore                 // the best score
	featEntropy               // of the probabilities, 1 if they are all equal
	featUnknown               // share of the words, by weight, that the corpus does not contain
	featLength                // log of the number of features
	featFamily                // score that the family of the best class adds
	featUnknownSquared        // the square of featUnknown: a foreign language is worse than a few unknown words
	featForeign               // cube of the unknown share of the content words: one in another language
	featStop                  // share of the words, by weight, that are stop words
	featDomain                // share of the words, by weight, that are part of domain names
	featNearest               // cosine to the nearest example of the best class, over words
	featName                  // share of the name of the best class that the text contains
	featKeyword               // 1 if the text contains a keyword of its agents that no others declare
	featShared                // log of the number of features shared with the nearest text of the class
	featCount
)

const (
	// maxLogOdds bounds the log odds, which are otherwise unbounded.
	maxLogOdds = 12
	// tieMargin is the distance to the best score up to which an intent of the
	// same agents is tied with the best.
	tieMargin = 0.5
	tieShare  = 0.60653066 // e to the -tieMargin
)

// scoredClass is the best class of a text and the inputs of its confidence.
type scoredClass struct {
	best     int
	features confidenceFeatures
	// If classes of the same agents are tied with the best, the text asks for
	// the agents and leaves open what for. tiedShare is the share of the best
	// one in their probability, 1 without a tie, and tied are the features that
	// differ for all of them together.
	tiedShare float64
	tied      tiedFeatures
	wide      bool // all classes of the family are tied, not only near ones
}

// tiedFeatures are the features of tied classes as one.
type tiedFeatures struct{ logOdds, margin float64 }

// withTies returns the features of the tied classes as one class.
func (v *scoredClass) withTies() confidenceFeatures {
	f := v.features
	f[featLogOdds], f[featMargin] = v.tied.logOdds, v.tied.margin
	return f
}

// widenTie ties all classes of the family of the best, whatever their scores: a keyword
// of the agents speaks for all of their intents.
func (v *scoredClass) widenTie(x *classScores, families *classFamilies) {
	whole, outside := 0.0, float32(0)
	for _, c := range x.candidates {
		if p := x.places[c]; families.tie(int(c), v.best) {
			whole += float64(p)
		} else {
			outside = max(outside, p)
		}
	}
	p := float64(x.places[v.best])
	v.tiedShare = p / whole
	v.tied = tiedFeatures{min(math.Log(whole/max(1-whole, 1e-9)), maxLogOdds), math.Log(p / max(float64(outside), 1e-9))}
	v.wide = true
}

// classFamilies are the sets of agents that serve the classes.
type classFamilies struct {
	of    []int32 // by class
	count int     // 0 if they are not part of the model
	tied  bool    // classes of one family may be tied
	familyMembers
}

// familyMembers are the classes of each family.
type familyMembers struct {
	first   []int32 // by family: index of its first member; one more at the end
	members []int32
}

// listMembers sets the members of the families.
func (f *classFamilies) listMembers() {
	families := int32(0)
	for _, g := range f.of {
		families = max(families, g+1)
	}
	f.first, f.members = make([]int32, families+1), make([]int32, len(f.of))
	for _, g := range f.of {
		f.first[g+1]++
	}
	for g := range families {
		f.first[g+1] += f.first[g]
	}
	next := slices.Clone(f.first)
	for c, g := range f.of {
		f.members[next[g]] = int32(c)
		next[g]++
	}
}

// membersWith returns the classes that may be tied with a class, with itself, in order.
func (f *classFamilies) membersWith(class int) []int32 {
	if !f.tied {
		return nil
	}
	g := f.of[class]
	return f.members[f.first[g]:f.first[g+1]]
}

// tie reports whether the two classes may be tied.
func (f *classFamilies) tie(a, b int) bool { return f.tied && f.of[a] == f.of[b] }

// classScores are the scores of the classes for a text, or their probabilities.
type classScores struct {
	places []float32 // by class, then by family; of the candidates alone
	// candidates are the classes to be compared, in order: all classes, or those that a
	// feature of the text has a weight for, with the likeliest of the others (biasOrder).
	candidates []int32
	order      *biasOrder // of the classes that are no candidates; nil if there are none
	marked     []uint64   // the set of the candidates
	required   int32      // a class that is a candidate in any case; -1 if there is none
	next       []int32    // of runnersUp
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

// newClassScores returns scores of which all classes are candidates.
func newClassScores(classes, families int) classScores {
	x := classScores{places: make([]float32, classes+families), candidates: make([]int32, classes), required: -1}
	for c := range x.candidates {
		x.candidates[c] = int32(c)
	}
	return x
}

// runnersUp returns up to limit candidates, the likeliest first, without the best class.
func (x *classScores) runnersUp(best, limit int) []int32 {
	next := x.next[:0]
	for _, c := range x.candidates {
		p := x.places[c]
		if int(c) == best || len(next) == limit && p <= x.places[next[limit-1]] {
			continue
		}
		if len(next) < limit {
			next = append(next, c)
		}
		at := len(next) - 1
		for ; at > 0 && p > x.places[next[at-1]]; at-- {
			next[at] = next[at-1]
		}
		next[at] = c
	}
	x.next = next
	return next
}

// minProbability is the probability from which a class counts in the entropy.
const minProbability = 1e-6

// rankScores finds the best class, and turns the scores of the classes into
// probabilities in place.
func rankScores(x *classScores, families *classFamilies, features int, mass *wordMass) scoredClass {
	scores := x.places
	classes := scores[:len(families.of)]
	best := int(x.candidates[0])
	for _, c := range x.candidates {
		if classes[c] > classes[best] {
			best = int(c)
		}
	}
	top, second, outside, sum := classes[best], float32(math.Inf(-1)), float32(math.Inf(-1)), float32(0)
	for _, c := range x.candidates {
		s := classes[c]
		if int(c) != best {
			second = max(second, s)
			if s < top-tieMargin || !families.tie(int(c), best) {
				outside = max(outside, s)
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
	leastTied := tieShare * (classes[best] * whole)
	// 1 - p of the best and of the tied ones, summed to avoid rounding
	entropy, rest, untied := others.entropy, others.probability, others.probability
	for _, c := range x.candidates {
		p := classes[c] * whole
		classes[c] = p
		if p > minProbability {
			entropy -= float64(p) * fastLog(p)
		}
		if int(c) != best {
			rest += float64(p)
			if p < leastTied || !families.tie(int(c), best) {
				untied += float64(p)
			}
		}
	}
	p := float64(classes[best])
	v := scoredClass{best: best, tiedShare: p / (p + rest - untied)}
	v.features[featConstant] = 1
	if len(classes) > 1 {
		v.features[featLogOdds] = min(math.Log(p/max(rest, 1e-9)), maxLogOdds)
		v.features[featMargin] = float64(top - second)
		v.features[featEntropy] = entropy / math.Log(float64(len(classes)))
	}
	if outside > float32(math.Inf(-1)) {
		v.tied = tiedFeatures{min(math.Log((1-untied)/max(untied, 1e-9)), maxLogOdds), float64(top - outside)}
	}
	v.features[featScore] = float64(top)
	v.features[featUnknown] = float64(mass.unknown)
	if content := float64(1 - mass.stop); content > 0 {
		foreign := float64(mass.unknown) / content
		v.features[featForeign] = foreign * foreign * foreign
	}
	v.features[featStop] = float64(mass.stop)
	v.features[featDomain] = float64(mass.domain)
	if families.count > 0 {
		v.features[featFamily] = float64(scores[len(families.of)+int(families.of[best])])
	}
	v.features[featUnknownSquared] = float64(mass.unknown * mass.unknown)
	v.features[featLength] = math.Log1p(float64(features))
	return v
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

// addLikeness adds the similarity to the declared texts of the best class.
func (f *confidenceFeatures) addLikeness(l textLikeness) {
	f[featNearest] = l.nearest
	f[featName] = l.name
	if l.keyword {
		f[featKeyword] = 1
	}
	f[featShared] = math.Log1p(l.shared)
}

// corpusSize is what the prior of the confidence model depends on.
type corpusSize struct {
	examples float64 // log of 1 + the mean number of examples of an intent
	classes  float64 // log of the number of intents
	vectors  float64 // length of the vectors of texts; 0 if they are no features
}

// Bounds of the registries that the prior was learned from.
const (
	maxPriorExamples = 100
	maxPriorClasses  = 60
)

func newCorpusSize(d *trainingSet) corpusSize {
	return corpusSize{
		examples: math.Log1p(min(d.examplesPerIntent(), maxPriorExamples)),
		classes:  math.Log(min(float64(max(d.classes, 1)), maxPriorClasses)),
		vectors:  float64(d.vectorLength),
	}
}

// sizedWeight is a weight as a linear function of the size of the corpus.
type sizedWeight struct{ constant, examples, classes float64 }

func (w *sizedWeight) at(s corpusSize) float64 {
	return w.constant + w.examples*s.examples + w.classes*s.classes
}

// priorRanking is the prior mean of the ranking, learned from small
// registries.
var priorRanking = [featCount]sizedWeight{
	featConstant:       {-0.082, 0.117, -0.519},
	featLogOdds:        {0.857, -0.062, -0.029},
	featMargin:         {0.254, -0.080, 0.056},
	featScore:          {0.060, 0.051, -0.156},
	featEntropy:        {-0.483, -0.882, 0.330},
	featUnknown:        {0.674, 0.056, -0.249},
	featLength:         {0.436, -0.022, 0.061},
	featFamily:         {-0.096, 0.184, 0.056},
	featUnknownSquared: {0.443, 0.240, 0.399},
	featForeign:        {-2.098, -0.000, -0.000},
	featStop:           {-0.712, -0.000, -0.000},
	featDomain:         {-5.905, 0.000, 0.000},
	featNearest:        {0.907, -0.739, 0.316},
	featName:           {2.366, -0.437, 0.066},
	featKeyword:        {0.466, 0.000, 0.000},
	featShared:         {-0.326, -0.018, 0.127},
}

// priorStretch and priorShift are the prior of the Platt curve.
var priorStretch, priorShift = sizedWeight{0.525, 0.046, 0.249}, sizedWeight{-0.141, 0.496, 0.249}

// vectorConstant is added to the prior of featConstant, times the examples, if vectors are
// features, because some words of every request are similar to those of an intent: as many
// requests out of scope are then rejected as without vectors.
const vectorConstant = -0.2

// typicalSpread is the standard deviation of each feature over the predictions
// that the prior was learned from.
var typicalSpread = confidenceFeatures{1, 2.660, 2.500, 3.199, 0.361, 0.250, 0.941, 0.725, 0.305, 0.347, 0.099, 0.050, 0.173, 0.359, 0.344, 0.921}

// priorThreshold returns the confidence below which an intent is rejected if there are no
// trials. The more examples there are, the fewer correct answers have a low confidence, and
// most predictions that have one are for requests out of scope.
func priorThreshold(size corpusSize) float64 {
	return min(max(MinActionConfidence, growingThreshold.at(size)), maxPriorThreshold)
}

var growingThreshold = sizedWeight{0.3, 0.16, 0}

// maxPriorThreshold is reached with eight examples an intent: registries with more have trials.
const maxPriorThreshold = 0.65
