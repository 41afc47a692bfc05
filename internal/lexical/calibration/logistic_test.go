package calibration

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/testkit"
)

// The gradient of the posterior is 0 at the estimate, even if the prior is far from it.
func TestFitLogistic_FindsMaximum(t *testing.T) {
	testkit.SkipWithRace(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var mean, precision, truth Features
		for a := range mean {
			truth[a], mean[a] = rng.NormFloat64()/typicalSpread[a], 4*rng.NormFloat64()/typicalSpread[a]
			precision[a] = 20 * typicalSpread[a] * typicalSpread[a]
		}
		trials := make([]Trial, 400)
		for i := range trials {
			f := &trials[i].Features
			common := rng.NormFloat64() // features are correlated
			for a := range f {
				f[a] = typicalSpread[a] * (common + 0.3*rng.NormFloat64())
			}
			f[Constant] = 1
			trials[i].Correct = rng.Float64() < sigmoid(dotProduct(&truth, f))
		}
		weight := fitLogistic(trials, func(*Trial) float64 { return 1 }, &mean, &precision)
		var gradient Features
		for i := range trials {
			off := -sigmoid(dotProduct(&weight, &trials[i].Features))
			if trials[i].Correct {
				off++
			}
			for a, x := range trials[i].Features {
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

// TestSolveCholesky checks that the solution satisfies the equations.
func TestSolveCholesky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var root, h [FeatureCount][FeatureCount]float64
		for i := range root {
			for j := range root[i] {
				root[i][j] = random.NormFloat64()
			}
		}
		var g Features
		for i := range h {
			g[i] = random.NormFloat64()
			for j := range h {
				for k := range root {
					h[i][j] += root[i][k] * root[j][k]
				}
			}
			h[i][i]++
		}
		lower := h
		x := solveCholesky(&lower, g)
		for i := range h {
			sum := 0.0
			for j := range h {
				sum += h[i][j] * x[j]
			}
			if math.Abs(sum-g[i]) > 1e-6 {
				t.Fatalf("row %d: got %v, want %v", i, sum, g[i])
			}
		}
	})
}
