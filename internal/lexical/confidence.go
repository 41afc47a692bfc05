package lexical

import (
	"math"
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
func (v *scoredClass) widenTie(probabilities []float32, families *classFamilies) {
	whole, outside := 0.0, float32(0)
	for c, p := range probabilities {
		if families.tie(c, v.best) {
			whole += float64(p)
		} else {
			outside = max(outside, p)
		}
	}
	p := float64(probabilities[v.best])
	v.tiedShare = p / whole
	v.tied = tiedFeatures{min(math.Log(whole/max(1-whole, 1e-9)), maxLogOdds), math.Log(p / max(float64(outside), 1e-9))}
	v.wide = true
}

// classFamilies are the sets of agents that serve the classes.
type classFamilies struct {
	of    []int32 // by class
	count int     // 0 if they are not part of the model
	tied  bool    // classes of one family may be tied
}

// tie reports whether the two classes may be tied.
func (f *classFamilies) tie(a, b int) bool { return f.tied && f.of[a] == f.of[b] }

// rankScores finds the best class, and turns the scores of the classes into
// probabilities in place.
func rankScores(scores []float32, families *classFamilies, features int, mass *wordMass) scoredClass {
	classes := scores[:len(families.of)]
	best := 0
	for c, s := range classes {
		if s > classes[best] {
			best = c
		}
	}
	top, second, outside := classes[best], float32(math.Inf(-1)), float32(math.Inf(-1))
	for c, s := range classes {
		if c != best {
			second = max(second, s)
			if s < top-tieMargin || !families.tie(c, best) {
				outside = max(outside, s)
			}
		}
	}
	softmax(classes)
	entropy, rest, others := 0.0, 0.0, 0.0 // 1 - p of the best and of the tied ones, summed to avoid rounding
	for c, p := range classes {
		if p > 1e-6 {
			entropy -= float64(p) * math.Log(float64(p))
		}
		if c != best {
			rest += float64(p)
			if p < tieShare*classes[best] || !families.tie(c, best) {
				others += float64(p)
			}
		}
	}
	p := float64(classes[best])
	v := scoredClass{best: best, tiedShare: p / (p + rest - others)}
	v.features[featConstant] = 1
	if len(classes) > 1 {
		v.features[featLogOdds] = min(math.Log(p/max(rest, 1e-9)), maxLogOdds)
		v.features[featMargin] = float64(top - second)
		v.features[featEntropy] = entropy / math.Log(float64(len(classes)))
	}
	if outside > float32(math.Inf(-1)) {
		v.tied = tiedFeatures{min(math.Log((1-others)/max(others, 1e-9)), maxLogOdds), float64(top - outside)}
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

// typicalSpread is the standard deviation of each feature over the predictions
// that the prior was learned from.
var typicalSpread = confidenceFeatures{1, 2.660, 2.500, 3.199, 0.361, 0.250, 0.941, 0.725, 0.305, 0.347, 0.099, 0.050, 0.173, 0.359, 0.344, 0.921}

// priorThreshold is the confidence below which an intent is rejected if there are no
// trials: with names alone, whatever is not acted on.
var priorThreshold = sizedWeight{MinActionConfidence, 0.02, 0}
