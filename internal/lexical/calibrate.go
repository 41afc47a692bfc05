package lexical

import (
	"cmp"
	"math"
	"slices"
)

const (
	// rankShare is the weight of the trials of left-out intents, against all,
	// where it is learned what tells right answers from wrong ones.
	rankShare = 0.25
	// binTrials is how many trials a point of the curve rests on at least, and
	// mostBins how many points there are.
	binTrials = 60
	leastBins = 3
	mostBins  = 25
	// doubt is how many trials' worth a point is drawn towards the smooth curve.
	doubt = 10.0
	// tail is how far, in log odds, the curve goes on beyond the trials, and
	// surest what it never passes.
	tail   = 4.0
	surest = 0.999
)

// calibration turns the signs of a prediction into the probability that it is
// right: a logistic regression puts predictions in order, and a rising curve
// gives each place in the order the share of right answers that trials had there.
//
// The order is learned from trials within and without scope, so that what looks
// like nothing declared comes last; the curve is drawn through those within scope
// alone. Confidence is therefore the probability that the intent is right given
// that it is one of those declared; how much is expected from outside is a matter
// of thresholds (unknown.go).
type calibration struct {
	rank  logistic
	knots []knot // rising in both; straight lines between
}

type knot struct{ odds, confidence float64 }

func calibrate(trials []trial) calibration {
	foreign := 0.0
	for i := range trials {
		if trials[i].foreign {
			foreign++
		}
	}
	weight := 1.0
	if foreign > 0 {
		weight = rankShare / (1 - rankShare) * (float64(len(trials)) - foreign) / foreign
	}
	c := calibration{rank: fitLogistic(trials, func(t *trial) float64 {
		if t.foreign {
			return weight
		}
		return 1
	})}
	var points []point
	for i := range trials {
		if t := &trials[i]; !t.foreign {
			points = append(points, point{c.rank.odds(&t.signs), t.right})
		}
	}
	c.knots = curve(points)
	return c
}

// point is one trial on the way to a curve.
type point struct {
	odds  float64
	right bool
}

// curve draws the share of right answers over the log odds: in bins of as many
// points, each drawn a little towards a smooth curve, joined where they would
// fall (isotonic regression by pooling adjacent violators).
func curve(points []point) []knot {
	slices.SortFunc(points, func(a, b point) int {
		if a.right != b.right && a.odds == b.odds {
			if b.right {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.odds, b.odds)
	})
	smooth := smoothCurve(points)
	n := len(points)
	bins := max(leastBins, min(mostBins, n/binTrials))
	var pools []pool
	for k := range bins {
		p := pool{bins: 1, weight: doubt}
		in := points[k*n/bins : (k+1)*n/bins]
		for _, q := range in {
			p.odds += q.odds / float64(len(in))
			p.right += doubt * smooth.at(q.odds) / float64(len(in))
			p.weight++
			if q.right {
				p.right++
			}
		}
		if len(in) == 0 {
			continue
		}
		for pools = append(pools, p); len(pools) > 1; pools = pools[:len(pools)-1] {
			before, last := &pools[len(pools)-2], &pools[len(pools)-1]
			if before.share() <= last.share() {
				break
			}
			before.join(last)
		}
	}
	knots := make([]knot, 0, len(pools)+2)
	for _, p := range pools {
		knots = append(knots, knot{p.odds, p.share()})
	}
	// Beyond the trials the curve goes on like the smooth one.
	first, last := knots[0], knots[len(knots)-1]
	low, high := points[0].odds-tail, points[n-1].odds+tail
	below, above := smooth.through(first).at(low), smooth.through(last).at(high)
	knots = slices.Insert(knots, 0, knot{low, min(first.confidence, below)})
	return append(knots, knot{high, max(last.confidence, min(surest, above))})
}

// pool is one or more neighbouring bins.
type pool struct {
	odds          float64 // in the middle
	right, weight float64
	bins          float64
}

func (p *pool) share() float64 { return p.right / p.weight }

func (p *pool) join(next *pool) {
	p.odds = (p.odds*p.bins + next.odds*next.bins) / (p.bins + next.bins)
	p.right += next.right
	p.weight += next.weight
	p.bins += next.bins
}

// sigmoidCurve is Platt's curve: log odds stretched and shifted.
type sigmoidCurve struct{ stretch, shift float64 }

func (s sigmoidCurve) at(odds float64) float64 { return sigmoid(s.stretch*odds + s.shift) }

// through is the same curve shifted so that it goes through the knot.
func (s sigmoidCurve) through(k knot) sigmoidCurve {
	return sigmoidCurve{s.stretch, logit(k.confidence) - s.stretch*k.odds}
}

// smoothCurve fits Platt's curve, which starts as what the odds say, by Newton's
// method.
func smoothCurve(points []point) sigmoidCurve {
	s := sigmoidCurve{stretch: 1}
	for range newtonSteps {
		var ga, gb, haa, hab, hbb float64
		for _, p := range points {
			q := s.at(p.odds)
			d := -q
			if p.right {
				d = 1 - q
			}
			w := q * (1 - q)
			ga, gb = ga+d*p.odds, gb+d
			haa, hab, hbb = haa+w*p.odds*p.odds, hab+w*p.odds, hbb+w
		}
		ga, haa, hbb = ga-(s.stretch-1), haa+1, hbb+1e-3
		det := haa*hbb - hab*hab
		s.stretch = max(0.05, s.stretch+max(-1, min(1, (hbb*ga-hab*gb)/det)))
		s.shift += max(-1, min(1, (haa*gb-hab*ga)/det))
	}
	return s
}

func logit(p float64) float64 {
	p = max(1e-6, min(1-1e-6, p))
	return math.Log(p / (1 - p))
}

// confidence is the probability that a prediction with these signs is right.
func (c *calibration) confidence(s *signs) float64 { return c.at(c.rank.odds(s)) }

func (c *calibration) at(odds float64) float64 {
	k := c.knots
	i, _ := slices.BinarySearchFunc(k, odds, func(k knot, o float64) int { return cmp.Compare(k.odds, o) })
	switch i {
	case 0:
		return k[0].confidence
	case len(k):
		return k[i-1].confidence
	}
	l, r := k[i-1], k[i]
	return l.confidence + (r.confidence-l.confidence)*(odds-l.odds)/(r.odds-l.odds)
}
