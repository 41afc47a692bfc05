package calibration

import (
	"cmp"
	"math"
	"slices"
)

// Knot is a point of a calibration curve.
type Knot struct{ LogOdds, Confidence float64 }

// labelledOdds is a held-out prediction with its outcome.
type labelledOdds struct {
	logOdds float64
	correct bool
}

// fitIsotonic fits the share of correct predictions as an increasing function
// of the log odds: equal-sized bins, each shrunk towards the Platt curve,
// merged where the share would fall (isotonic regression by pooling adjacent
// violators).
func fitIsotonic(points []labelledOdds, prior plattCurve, size CorpusSize) []Knot {
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
	knots := make([]Knot, 0, len(pools)+2)
	for _, p := range pools {
		knots = append(knots, Knot{p.logOdds, p.correctShare()})
	}
	// Extend the curve beyond the predictions along the Platt curve.
	first, last := knots[0], knots[len(knots)-1]
	low, high := points[0].logOdds-tailLogOdds, points[n-1].logOdds+tailLogOdds
	below, above := smooth.shiftedThrough(first).probability(low), smooth.shiftedThrough(last).probability(high)
	knots = slices.Insert(knots, 0, Knot{low, min(first.Confidence, below)})
	return append(knots, Knot{high, max(last.Confidence, min(maxConfidence, above))})
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
func (s plattCurve) shiftedThrough(k Knot) plattCurve {
	return plattCurve{s.stretch, Logit(k.Confidence) - s.stretch*k.LogOdds}
}

// knots returns the curve at regular intervals.
func (s plattCurve) knots() []Knot {
	const reach, steps = 12.0, 48
	var knots []Knot
	for i := range steps + 1 {
		odds := reach * (2*float64(i)/steps - 1)
		knots = append(knots, Knot{odds, min(maxConfidence, s.probability(odds))})
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

// Logit returns the log odds of a probability, which it bounds to 1e-6 from 0 and 1.
func Logit(p float64) float64 {
	p = max(1e-6, min(1-1e-6, p))
	return math.Log(p / (1 - p))
}
