package calibration

import (
	"cmp"
	"math"
	"slices"
)

const (
	// outOfScopeWeight is the total weight of out-of-scope predictions when the
	// ranking is fitted.
	outOfScopeWeight = 0.25
	// minBinSize is the number of predictions per bin, and minBins and maxBins
	// bound the number of bins.
	minBinSize = 60
	minBins    = 3
	maxBins    = 25
	// The weight by which a bin is shrunk towards the Platt curve, and those of the priors of
	// the ranking and of the Platt curve, in predictions: the first constant is for a corpus
	// with many examples, the second for one without (see priorWeight).
	minBinObservations, maxBinObservations     = 10.0, 1_000.0
	minPriorObservations, maxPriorObservations = 30.0, 2_000.0
	minPlattObservations, maxPlattObservations = 20.0, 4_000.0
	// reliableExamples is the number of examples of an intent, and reliableTrials that of
	// predictions, over which the weight of the prior falls by a factor of e.
	reliableExamples = 6.0
	reliableTrials   = 400.0
	// tailLogOdds is how far, in log odds, the curve extends beyond the
	// predictions, and maxConfidence is its upper bound.
	tailLogOdds   = 4.0
	maxConfidence = 0.999
)

// Model maps the features of a prediction to the probability that it is correct. A logistic
// regression ranks predictions, and an isotonic curve maps the rank to the share of correct
// held-out predictions.
//
// The ranking is fitted on predictions in and out of scope, so that
// out-of-scope texts rank last. The curve is fitted on those in scope only.
// Therefore the confidence is the probability that the intent is correct if it
// is a declared one.
type Model struct {
	Ranking Features // weights
	Knots   []Knot   // increasing in both; linear in between
}

// priorWeight returns the weight of a prior beside a number of trials. The fewer examples
// an intent has, the worse is a model that is trained without one of them, and the less do
// its predictions show about the whole model.
func (s CorpusSize) priorWeight(least, most float64, trials int) float64 {
	return least + (most-least)*math.Exp(-math.Expm1(s.Examples)/reliableExamples-float64(trials)/reliableTrials)
}

// Fit fits a model to held-out predictions. The fewer there are, and the smaller the corpus, the
// more does the prior count.
func Fit(trials []Trial, size CorpusSize) Model {
	outOfScope := 0.0
	for i := range trials {
		if trials[i].OutOfScope {
			outOfScope++
		}
	}
	weight := 1.0
	if outOfScope > 0 {
		weight = outOfScopeWeight / (1 - outOfScopeWeight) * (float64(len(trials)) - outOfScope) / outOfScope
	}
	var mean, precision Features
	for a := range mean {
		mean[a] = priorRanking[a].at(size)
		precision[a] = size.priorWeight(minPriorObservations, maxPriorObservations, len(trials)) * typicalSpread[a] * typicalSpread[a]
	}
	mean[Constant] += vectorConstant * size.Vectors * size.Examples
	c := Model{Ranking: fitLogistic(trials, func(t *Trial) float64 {
		if t.OutOfScope {
			return weight
		}
		return 1
	}, &mean, &precision)}
	var points []labelledOdds
	for i := range trials {
		if t := &trials[i]; !t.OutOfScope {
			points = append(points, labelledOdds{dotProduct(&c.Ranking, &t.Features), t.Correct})
		}
	}
	c.Knots = fitIsotonic(points, plattCurve{priorStretch.at(size), priorShift.at(size)}, size)
	return c
}

// Confidence returns the probability that a prediction with these features is
// correct.
func (c *Model) Confidence(s *Features) float64 {
	return c.Interpolate(dotProduct(&c.Ranking, s))
}

// Interpolate returns the confidence in a prediction with the given log odds of the ranking.
func (c *Model) Interpolate(odds float64) float64 {
	k := c.Knots
	i, _ := slices.BinarySearchFunc(k, odds, func(k Knot, o float64) int { return cmp.Compare(k.LogOdds, o) })
	switch i {
	case 0:
		return k[0].Confidence
	case len(k):
		return k[i-1].Confidence
	}
	l, r := k[i-1], k[i]
	return l.Confidence + (r.Confidence-l.Confidence)*(odds-l.LogOdds)/(r.LogOdds-l.LogOdds)
}

// OddsAt returns the log odds at which the curve reaches a confidence.
func (c *Model) OddsAt(confidence float64) float64 {
	low, high := c.Knots[0].LogOdds, c.Knots[len(c.Knots)-1].LogOdds
	for range 40 {
		if middle := (low + high) / 2; c.Interpolate(middle) < confidence {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// CorpusSize is what the prior depends on.
type CorpusSize struct {
	Examples float64 // log of 1 + the mean number of examples of an intent
	Classes  float64 // log of the number of intents
	Vectors  float64 // length of the vectors of texts; 0 if they are no features
}

// Bounds of the registries that the prior was learned from.
const (
	maxPriorExamples = 100
	maxPriorClasses  = 60
)

// NewCorpusSize returns the size of a corpus with the given mean number of examples of an
// intent and number of intents. vectors is the length of the vectors of texts.
func NewCorpusSize(examples float64, intents int, vectors float32) CorpusSize {
	return CorpusSize{
		Examples: math.Log1p(min(examples, maxPriorExamples)),
		Classes:  math.Log(min(float64(max(intents, 1)), maxPriorClasses)),
		Vectors:  float64(vectors),
	}
}

// sizedWeight is a weight as a linear function of the size of the corpus.
type sizedWeight struct{ constant, examples, classes float64 }

func (w *sizedWeight) at(s CorpusSize) float64 {
	return w.constant + w.examples*s.Examples + w.classes*s.Classes
}

// priorRanking is the prior mean of the ranking, learned from small
// registries.
var priorRanking = [FeatureCount]sizedWeight{
	Constant:       {-0.082, 0.117, -0.519},
	LogOdds:        {0.857, -0.062, -0.029},
	Margin:         {0.254, -0.080, 0.056},
	Score:          {0.060, 0.051, -0.156},
	Entropy:        {-0.483, -0.882, 0.330},
	UnknownShare:   {0.674, 0.056, -0.249},
	Length:         {0.436, -0.022, 0.061},
	FamilyScore:    {-0.096, 0.184, 0.056},
	UnknownSquared: {0.443, 0.240, 0.399},
	UnknownContent: {-2.098, -0.000, -0.000},
	StopShare:      {-0.712, -0.000, -0.000},
	DomainShare:    {-5.905, 0.000, 0.000},
	NearestExample: {0.907, -0.739, 0.316},
	NameShare:      {2.366, -0.437, 0.066},
	KeywordMatch:   {0.466, 0.000, 0.000},
	SharedFeatures: {-0.326, -0.018, 0.127},
}

// priorStretch and priorShift are the prior of the Platt curve.
var priorStretch, priorShift = sizedWeight{0.525, 0.046, 0.249}, sizedWeight{-0.141, 0.496, 0.249}

// vectorConstant is added to the prior of Constant, times the examples, if vectors are
// features, because some words of every request are similar to those of an intent: as many
// requests out of scope are then rejected as without vectors.
const vectorConstant = -0.2

// typicalSpread is the standard deviation of each feature over the predictions
// that the prior was learned from.
var typicalSpread = Features{1, 2.660, 2.500, 3.199, 0.361, 0.250, 0.941, 0.725, 0.305, 0.347, 0.099, 0.050, 0.173, 0.359, 0.344, 0.921}
