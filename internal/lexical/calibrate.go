package lexical

import (
	"cmp"
	"math"
	"slices"
)

const (
	// outOfScopeWeight is the weight of the trials of left-out intents, against all,
	// where it is learned what tells right answers from wrong ones.
	outOfScopeWeight = 0.25
	// minBinSize is how many trials a point of the curve rests on at least, and
	// mostBins how many points there are.
	minBinSize = 60
	minBins    = 3
	maxBins    = 25
	// priorWeight is how many trials' worth a point is drawn towards the smooth curve.
	priorWeight = 10.0
	// tailLogOdds is how far, in log odds, the curve goes on beyond the trials, and
	// surest what it never passes.
	tailLogOdds   = 4.0
	maxConfidence = 0.999
)

// confidenceCalibration turns the signs of a prediction into the probability that it is
// right: a logistic regression puts predictions in order, and a rising curve
// gives each place in the order the share of right answers that trials had there.
//
// The order is learned from trials within and without scope, so that what looks
// like nothing declared comes last; the curve is drawn through those within scope
// alone. Confidence is therefore the probability that the intent is right given
// that it is one of those declared; how much is expected from outside is a matter
// of thresholds (unknown.go).
type confidenceCalibration struct {
	ranking logisticRegression
	knots   []curveKnot // rising in both; straight lines between
}

type curveKnot struct{ logOdds, confidence float64 }

func fitCalibration(trials []heldOutPrediction) confidenceCalibration {
	foreign := 0.0
	for i := range trials {
		if trials[i].outOfScope {
			foreign++
		}
	}
	weight := 1.0
	if foreign > 0 {
		weight = outOfScopeWeight / (1 - outOfScopeWeight) * (float64(len(trials)) - foreign) / foreign
	}
	c := confidenceCalibration{ranking: fitLogistic(trials, func(t *heldOutPrediction) float64 {
		if t.outOfScope {
			return weight
		}
		return 1
	})}
	var points []labelledOdds
	for i := range trials {
		if t := &trials[i]; !t.outOfScope {
			points = append(points, labelledOdds{c.ranking.logOdds(&t.features), t.correct})
		}
	}
	c.knots = fitIsotonic(points)
	return c
}

// labelledOdds is one trial on the way to a curve.
type labelledOdds struct {
	logOdds float64
	correct bool
}

// fitIsotonic draws the share of right answers over the log odds: in bins of as many
// points, each drawn a little towards a smooth curve, joined where they would
// fall (isotonic regression by pooling adjacent violators).
func fitIsotonic(points []labelledOdds) []curveKnot {
	slices.SortFunc(points, func(a, b labelledOdds) int {
		if a.correct != b.correct && a.logOdds == b.logOdds {
			if b.correct {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.logOdds, b.logOdds)
	})
	smooth := fitPlatt(points)
	n := len(points)
	bins := max(minBins, min(maxBins, n/minBinSize))
	var pools []isotonicBlock
	for k := range bins {
		p := isotonicBlock{bins: 1, weight: priorWeight}
		in := points[k*n/bins : (k+1)*n/bins]
		for _, q := range in {
			p.logOdds += q.logOdds / float64(len(in))
			p.correct += priorWeight * smooth.probability(q.logOdds) / float64(len(in))
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
	// Beyond the trials the curve goes on like the smooth one.
	first, last := knots[0], knots[len(knots)-1]
	low, high := points[0].logOdds-tailLogOdds, points[n-1].logOdds+tailLogOdds
	below, above := smooth.shiftedThrough(first).probability(low), smooth.shiftedThrough(last).probability(high)
	knots = slices.Insert(knots, 0, curveKnot{low, min(first.confidence, below)})
	return append(knots, curveKnot{high, max(last.confidence, min(maxConfidence, above))})
}

// isotonicBlock is one or more neighbouring bins.
type isotonicBlock struct {
	logOdds         float64 // in the middle
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

// plattCurve is Platt's curve: log odds stretched and shifted.
type plattCurve struct{ stretch, shift float64 }

func (s plattCurve) probability(odds float64) float64 { return sigmoid(s.stretch*odds + s.shift) }

// shiftedThrough is the same curve shifted so that it goes through the knot.
func (s plattCurve) shiftedThrough(k curveKnot) plattCurve {
	return plattCurve{s.stretch, logOdds(k.confidence) - s.stretch*k.logOdds}
}

// fitPlatt fits Platt's curve, which starts as what the odds say, by Newton's
// method.
func fitPlatt(points []labelledOdds) plattCurve {
	s := plattCurve{stretch: 1}
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
		ga, haa, hbb = ga-(s.stretch-1), haa+1, hbb+1e-3
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

// confidence is the probability that a prediction with these signs is right.
func (c *confidenceCalibration) confidence(s *confidenceFeatures) float64 {
	return c.interpolate(c.ranking.logOdds(s))
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
