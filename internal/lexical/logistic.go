package lexical

import "math"

// logisticRegression is a logistic regression over confidence features.
type logisticRegression struct {
	weight confidenceFeatures
	mean   confidenceFeatures
	spread confidenceFeatures
}

const (
	newtonSteps = 12
	// ridgePenalty is the L2 penalty of each weight, in observations.
	ridgePenalty = 1.0
)

// fitLogistic fits the probability that a prediction is correct by iteratively
// reweighted least squares (Newton's method).
func fitLogistic(trials []heldOutPrediction, weightOf func(*heldOutPrediction) float64) logisticRegression {
	l := newStandardized(trials, weightOf)
	for range newtonSteps {
		var gradient confidenceFeatures
		var hessian [featCount][featCount]float64
		for i := range trials {
			t := &trials[i]
			w := weightOf(t)
			x := l.standardize(&t.features)
			p := sigmoid(dotProduct(&l.weight, &x))
			off := -p
			if t.correct {
				off = 1 - p
			}
			for a := range x {
				gradient[a] += w * off * x[a]
				for b := range a + 1 {
					hessian[a][b] += w * p * (1 - p) * x[a] * x[b]
				}
			}
		}
		for a := range gradient {
			if a != featConstant {
				gradient[a] -= ridgePenalty * l.weight[a]
				hessian[a][a] += ridgePenalty
			}
			hessian[a][a] += 1e-6
		}
		step := solveCholesky(&hessian, gradient)
		for a := range step {
			l.weight[a] += max(-2, min(2, step[a]))
		}
	}
	return l
}

// newStandardized computes the mean and spread of every feature but the
// constant one.
func newStandardized(trials []heldOutPrediction, weightOf func(*heldOutPrediction) float64) logisticRegression {
	var l logisticRegression
	total := 0.0
	for i := range trials {
		w := weightOf(&trials[i])
		total += w
		for a, v := range trials[i].features {
			l.mean[a] += w * v
		}
	}
	for a := range l.mean {
		l.mean[a] /= total
	}
	for i := range trials {
		w := weightOf(&trials[i])
		for a, v := range trials[i].features {
			l.spread[a] += w * (v - l.mean[a]) * (v - l.mean[a])
		}
	}
	for a := range l.spread {
		l.spread[a] = math.Sqrt(l.spread[a] / total)
	}
	l.mean[featConstant], l.spread[featConstant] = 0, 1
	return l
}

func (l *logisticRegression) standardize(s *confidenceFeatures) confidenceFeatures {
	var x confidenceFeatures
	for a := range s {
		if l.spread[a] > 1e-9 {
			x[a] = (s[a] - l.mean[a]) / l.spread[a]
		}
	}
	return x
}

// logOdds returns the log odds that a prediction with these features is
// correct.
func (l *logisticRegression) logOdds(s *confidenceFeatures) float64 {
	x := l.standardize(s)
	return dotProduct(&l.weight, &x)
}

func dotProduct(a, b *confidenceFeatures) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// solveCholesky solves h·x = g for a symmetric positive definite h, of which
// the lower half is given, by Cholesky decomposition.
func solveCholesky(h *[featCount][featCount]float64, g confidenceFeatures) confidenceFeatures {
	for i := range featCount {
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
	for i := featCount - 1; i >= 0; i-- {
		for k := i + 1; k < featCount; k++ {
			g[i] -= h[k][i] * g[k]
		}
		g[i] /= h[i][i]
	}
	return g
}
