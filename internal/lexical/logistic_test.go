package lexical

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// The gradient of the posterior is 0 at the estimate, even if the prior is far from it.
func TestFitLogistic_FindsMaximum(t *testing.T) {
	testkit.SkipWithRace(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var mean, precision, truth confidenceFeatures
		for a := range mean {
			truth[a], mean[a] = rng.NormFloat64()/typicalSpread[a], 4*rng.NormFloat64()/typicalSpread[a]
			precision[a] = 20 * typicalSpread[a] * typicalSpread[a]
		}
		trials := make([]heldOutPrediction, 400)
		for i := range trials {
			f := &trials[i].features
			common := rng.NormFloat64() // features are correlated
			for a := range f {
				f[a] = typicalSpread[a] * (common + 0.3*rng.NormFloat64())
			}
			f[featConstant] = 1
			trials[i].correct = rng.Float64() < sigmoid(dotProduct(&truth, f))
		}
		weight := fitLogistic(trials, func(*heldOutPrediction) float64 { return 1 }, &mean, &precision)
		var gradient confidenceFeatures
		for i := range trials {
			off := -sigmoid(dotProduct(&weight, &trials[i].features))
			if trials[i].correct {
				off++
			}
			for a, x := range trials[i].features {
				gradient[a] += off * x
			}
		}
		for a := range gradient {
			gradient[a] -= precision[a] * (weight[a] - mean[a])
			if off := math.Abs(gradient[a]) / typicalSpread[a]; off > 0.1 {
				t.Fatalf("case %d: got a gradient of %.3g for feature %d, want 0", n, off, a)
			}
		}
	}
}
