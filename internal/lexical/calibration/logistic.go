package calibration

import "math"

// newtonSteps bounds the steps, those that are halved included.
const newtonSteps = 20

// longestStep bounds a step of a weight, in the inverse of the typical spread of its
// feature.
const longestStep = 2

// fitLogistic fits the probability that a prediction is correct as a logistic
// regression over confidence features, by iteratively reweighted least squares
// (Newton's method). It is a maximum a posteriori estimate: each weight has a
// normal prior, with the given mean and the precision of that many observations
// of a typical spread. Long steps are shortened, and steps that lower the posterior are
// halved, because Newton's method diverges if the prior is far from the estimate.
func fitLogistic(trials []Trial, weightOf func(*Trial) float64, mean, precision *Features) Features {
	best, weight := *mean, *mean
	highest := math.Inf(-1)
	var step Features
	for range newtonSteps {
		posterior := 0.0 // its logarithm
		var gradient Features
		var hessian [FeatureCount][FeatureCount]float64
		for i := range trials {
			t := &trials[i]
			w := weightOf(t)
			x := &t.Features
			odds := dotProduct(&weight, x)
			p := sigmoid(odds)
			off := -p
			if t.Correct {
				off = 1 - p
				odds = -odds
			}
			posterior -= w * softplus(odds)
			h := w * p * (1 - p)
			for a := range x {
				gradient[a] += w * off * x[a]
				for b := range a + 1 {
					hessian[a][b] += h * x[a] * x[b]
				}
			}
		}
		for a := range weight {
			d := weight[a] - mean[a]
			posterior -= precision[a] * d * d / 2
		}
		if posterior < highest {
			for a := range step {
				step[a] /= 2
				weight[a] = best[a] + step[a]
			}
			continue
		}
		best, highest = weight, posterior
		largest := 0.0
		for a := range gradient {
			gradient[a] -= precision[a] * (weight[a] - mean[a])
			hessian[a][a] += precision[a]
		}
		step = solveCholesky(&hessian, gradient)
		for a := range step {
			largest = max(largest, math.Abs(step[a])*typicalSpread[a])
		}
		for a := range step {
			step[a] *= min(1, longestStep/largest)
			weight[a] += step[a]
		}
		if largest < 1e-4 {
			return weight
		}
	}
	return best
}

// softplus returns the logarithm of 1 + e to the x.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func dotProduct(a, b *Features) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// solveCholesky solves h·x = g for a symmetric positive definite h, of which
// the lower half is given, by Cholesky decomposition.
func solveCholesky(h *[FeatureCount][FeatureCount]float64, g Features) Features {
	for i := range FeatureCount {
		for j := range i + 1 {
			sum := h[i][j]
			for k := range j {
				sum -= h[i][k] * h[j][k]
			}
			if i == j {
				h[i][i] = math.Sqrt(max(sum, 1e-12))
			} else {
				h[i][j] = sum / h[j][j]
			}
		}
	}
	for i := range g {
		for k := range i {
			g[i] -= h[i][k] * g[k]
		}
		g[i] /= h[i][i]
	}
	for i := FeatureCount - 1; i >= 0; i-- {
		for k := i + 1; k < FeatureCount; k++ {
			g[i] -= h[k][i] * g[k]
		}
		g[i] /= h[i][i]
	}
	return g
}
