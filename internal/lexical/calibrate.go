package lexical

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

// confidenceCalibration maps the features of a prediction to the probability
// that it is correct. A logistic regression ranks predictions, and an isotonic
// curve maps the rank to the share of correct held-out predictions.
//
// The ranking is fitted on predictions in and out of scope, so that
// out-of-scope texts rank last. The curve is fitted on those in scope only.
// Therefore the confidence is the probability that the intent is correct if it
// is a declared one. The expected share of out-of-scope requests enters through
// the thresholds (crossfit.go).
type confidenceCalibration struct {
	ranking confidenceFeatures // weights
	knots   []curveKnot        // increasing in both; linear in between
}

// priorWeight returns the weight of a prior beside a number of trials. The fewer examples
// an intent has, the worse is a model that is trained without one of them, and the less do
// its predictions show about the whole model.
func (s corpusSize) priorWeight(least, most float64, trials int) float64 {
	return least + (most-least)*math.Exp(-math.Expm1(s.examples)/reliableExamples-float64(trials)/reliableTrials)
}

type curveKnot struct{ logOdds, confidence float64 }

func fitCalibration(trials []heldOutPrediction, size corpusSize) confidenceCalibration {
	outOfScope := 0.0
	for i := range trials {
		if trials[i].outOfScope {
			outOfScope++
		}
	}
	weight := 1.0
	if outOfScope > 0 {
		weight = outOfScopeWeight / (1 - outOfScopeWeight) * (float64(len(trials)) - outOfScope) / outOfScope
	}
	var mean, precision confidenceFeatures
	for a := range mean {
		mean[a] = priorRanking[a].at(size)
		precision[a] = size.priorWeight(minPriorObservations, maxPriorObservations, len(trials)) * typicalSpread[a] * typicalSpread[a]
	}
	mean[featConstant] += vectorConstant * size.vectors * size.examples
	c := confidenceCalibration{ranking: fitLogistic(trials, func(t *heldOutPrediction) float64 {
		if t.outOfScope {
			return weight
		}
		return 1
	}, &mean, &precision)}
	var points []labelledOdds
	for i := range trials {
		if t := &trials[i]; !t.outOfScope {
			points = append(points, labelledOdds{dotProduct(&c.ranking, &t.features), t.correct})
		}
	}
	c.knots = fitIsotonic(points, plattCurve{priorStretch.at(size), priorShift.at(size)}, size)
	return c
}

// labelledOdds is a held-out prediction with its outcome.
type labelledOdds struct {
	logOdds float64
	correct bool
}

// fitIsotonic fits the share of correct predictions as an increasing function
// of the log odds: equal-sized bins, each shrunk towards the Platt curve,
// merged where the share would fall (isotonic regression by pooling adjacent
// violators).
func fitIsotonic(points []labelledOdds, prior plattCurve, size corpusSize) []curveKnot {
	slices.SortFunc(points, func(a, b labelledOdds) int {
		if a.correct != b.correct && a.logOdds == b.logOdds {
			if b.correct {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.logOdds, b.logOdds)
	})
	smooth := fitPlatt(points, prior, size.priorWeight(minPlattObservations, maxPlattObservations, len(points)))
	n := len(points)
	bins := min(maxBins, n/minBinSize)
	if bins < minBins {
		return smooth.knots()
	}
	var pools []isotonicBlock
	weight := size.priorWeight(minBinObservations, maxBinObservations, n)
	for k := range bins {
		p := isotonicBlock{bins: 1, weight: weight}
		in := points[k*n/bins : (k+1)*n/bins]
		for _, q := range in {
			p.logOdds += q.logOdds / float64(len(in))
			p.correct += weight * smooth.probability(q.logOdds) / float64(len(in))
			p.weight++
			if q.correct {
				p.correct++
			}
		}
		if len(in) == 0 {
			continue
		}
		for pools = append(pools, p); len(pools) > 1; pools = pools[:len(pools)-1] {
			before, last := &pools[len(pools)-2], &pools[len(pools)-1]
			if before.correctShare() <= last.correctShare() {
				break
			}
			before.merge(last)
		}
	}
	knots := make([]curveKnot, 0, len(pools)+2)
	for _, p := range pools {
		knots = append(knots, curveKnot{p.logOdds, p.correctShare()})
	}
	// Extend the curve beyond the predictions along the Platt curve.
	first, last := knots[0], knots[len(knots)-1]
	low, high := points[0].logOdds-tailLogOdds, points[n-1].logOdds+tailLogOdds
	below, above := smooth.shiftedThrough(first).probability(low), smooth.shiftedThrough(last).probability(high)
	knots = slices.Insert(knots, 0, curveKnot{low, min(first.confidence, below)})
	return append(knots, curveKnot{high, max(last.confidence, min(maxConfidence, above))})
}

// isotonicBlock is one or more adjacent bins.
type isotonicBlock struct {
	logOdds         float64 // mean over the bins
	correct, weight float64
	bins            float64
}

func (p *isotonicBlock) correctShare() float64 { return p.correct / p.weight }

func (p *isotonicBlock) merge(next *isotonicBlock) {
	p.logOdds = (p.logOdds*p.bins + next.logOdds*next.bins) / (p.bins + next.bins)
	p.correct += next.correct
	p.weight += next.weight
	p.bins += next.bins
}

// plattCurve is a sigmoid over scaled and shifted log odds.
type plattCurve struct{ stretch, shift float64 }

func (s plattCurve) probability(odds float64) float64 { return sigmoid(s.stretch*odds + s.shift) }

// shiftedThrough returns the curve shifted so that it passes through the knot.
func (s plattCurve) shiftedThrough(k curveKnot) plattCurve {
	return plattCurve{s.stretch, logOdds(k.confidence) - s.stretch*k.logOdds}
}

// knots returns the curve at regular intervals.
func (s plattCurve) knots() []curveKnot {
	const reach, steps = 12.0, 48
	var knots []curveKnot
	for i := range steps + 1 {
		odds := reach * (2*float64(i)/steps - 1)
		knots = append(knots, curveKnot{odds, min(maxConfidence, s.probability(odds))})
	}
	return knots
}

// fitPlatt fits a Platt curve by Newton's method. The prior counts as much as the given
// number of points.
func fitPlatt(points []labelledOdds, prior plattCurve, observations float64) plattCurve {
	s := prior
	for range newtonSteps {
		var ga, gb, haa, hab, hbb float64
		for _, p := range points {
			q := s.probability(p.logOdds)
			d := -q
			if p.correct {
				d = 1 - q
			}
			w := q * (1 - q)
			ga, gb = ga+d*p.logOdds, gb+d
			haa, hab, hbb = haa+w*p.logOdds*p.logOdds, hab+w*p.logOdds, hbb+w
		}
		ga, gb = ga-observations*(s.stretch-prior.stretch), gb-observations/4*(s.shift-prior.shift)
		haa, hbb = haa+observations, hbb+observations/4
		det := haa*hbb - hab*hab
		s.stretch = max(0.05, s.stretch+max(-1, min(1, (hbb*ga-hab*gb)/det)))
		s.shift += max(-1, min(1, (haa*gb-hab*ga)/det))
	}
	return s
}

func logOdds(p float64) float64 {
	p = max(1e-6, min(1-1e-6, p))
	return math.Log(p / (1 - p))
}

// confidence returns the probability that a prediction with these features is
// correct.
func (c *confidenceCalibration) confidence(s *confidenceFeatures) float64 {
	return c.interpolate(dotProduct(&c.ranking, s))
}

func (c *confidenceCalibration) interpolate(odds float64) float64 {
	k := c.knots
	i, _ := slices.BinarySearchFunc(k, odds, func(k curveKnot, o float64) int { return cmp.Compare(k.logOdds, o) })
	switch i {
	case 0:
		return k[0].confidence
	case len(k):
		return k[i-1].confidence
	}
	l, r := k[i-1], k[i]
	return l.confidence + (r.confidence-l.confidence)*(odds-l.logOdds)/(r.logOdds-l.logOdds)
}

// oddsAt returns the log odds at which the curve reaches a confidence.
func (c *confidenceCalibration) oddsAt(confidence float64) float64 {
	low, high := c.knots[0].logOdds, c.knots[len(c.knots)-1].logOdds
	for range 40 {
		if middle := (low + high) / 2; c.interpolate(middle) < confidence {
			low = middle
		} else {
			high = middle
		}
	}
	return high
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
	featUnknownContent: {-2.098, -0.000, -0.000},
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
