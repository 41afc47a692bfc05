package calibration

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestFitIsotonic checks that the curve rises, stays within bounds and follows the points.
func TestFitIsotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "points")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		stretch := rapid.Float64Range(-2, 3).Draw(t, "stretch")
		points := make([]labelledOdds, n)
		for i := range points {
			odds := random.NormFloat64() * 3
			points[i] = labelledOdds{odds, random.Float64() < sigmoid(stretch*odds)}
		}
		c := Model{Knots: fitIsotonic(points, plattCurve{stretch: 1}, CorpusSize{Examples: math.Log1p(100)})}
		last := 0.0
		for odds := -20.0; odds < 20; odds += 0.25 {
			p := c.Interpolate(odds)
			if p < last || p > 1 || math.IsNaN(p) {
				t.Fatalf("got %v at %v behind %v, want a rising probability", p, odds, last)
			}
			last = p
		}
	})
}

// TestFitIsotonic_ApproximatesProbability checks that the curve approximates the probability from
// which many points were drawn.
func TestFitIsotonic_ApproximatesProbability(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	truth := func(odds float64) float64 { return 0.1 + 0.85*sigmoid(2*odds-1) }
	points := make([]labelledOdds, 20_000)
	for i := range points {
		odds := random.NormFloat64() * 2
		points[i] = labelledOdds{odds, random.Float64() < truth(odds)}
	}
	c := Model{Knots: fitIsotonic(points, plattCurve{stretch: 1}, CorpusSize{Examples: math.Log1p(100)})}
	for odds := -3.0; odds <= 3; odds += 0.5 {
		if got, want := c.Interpolate(odds), truth(odds); math.Abs(got-want) > 0.05 {
			t.Errorf("at %v: got %v, want about %v", odds, got, want)
		}
	}
}

// TestLogistic checks that the regression finds the informative feature and
// ignores a constant one.
func TestLogistic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	trials := make([]Trial, 2000)
	for i := range trials {
		s := &trials[i].Features
		s[Constant], s[Score], s[Margin] = 1, random.NormFloat64()*5+10, random.NormFloat64()
		trials[i].Correct = random.Float64() < sigmoid(s[Score]-10)
	}
	var mean, precision Features
	for a := range precision {
		precision[a] = 1
	}
	mean[Entropy] = 0.5
	weight := fitLogistic(trials, func(*Trial) float64 { return 1 }, &mean, &precision)
	if w := weight[Score]; w < 0.8 || w > 1.2 {
		t.Errorf("got weight %v of the informative feature, want about 1", w)
	}
	if w := weight[Margin]; math.Abs(w) > 0.5 {
		t.Errorf("got weight %v of the uninformative feature, want about 0", w)
	}
	if w := weight[Entropy]; math.Abs(w-0.5) > 1e-6 {
		t.Errorf("got weight %v of one that never changes, want that of the prior", w)
	}
	for a := range precision {
		precision[a] = 1e7
	}
	if w := fitLogistic(trials, func(*Trial) float64 { return 1 }, &mean, &precision)[Score]; math.Abs(w) > 0.05 {
		t.Errorf("got weight %v with a strong prior, want about 0", w)
	}
}
