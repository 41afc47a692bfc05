package lexical

import "math"

// logistic is a logistic regression over signs.
type logistic struct {
	weight signs
	mean   signs
	spread signs
}

const (
	newtonSteps = 12
	// ridge is how many observations' worth of doubt each weight starts with.
	ridge = 1.0
)

// fitLogistic fits the probability that a trial is right by iterated weighted
// least squares (Newton's method).
func fitLogistic(trials []trial, weightOf func(*trial) float64) logistic {
	l := standardise(trials, weightOf)
	for range newtonSteps {
		var gradient signs
		var hessian [signCount][signCount]float64
		for i := range trials {
			t := &trials[i]
			w := weightOf(t)
			x := l.standard(&t.signs)
			p := sigmoid(dot(&l.weight, &x))
			off := -p
			if t.right {
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
			if a != signOne {
				gradient[a] -= ridge * l.weight[a]
				hessian[a][a] += ridge
			}
			hessian[a][a] += 1e-6
		}
		step := solve(&hessian, gradient)
		for a := range step {
			l.weight[a] += max(-2, min(2, step[a]))
		}
	}
	return l
}

// standardise centres and scales every sign but the constant one.
func standardise(trials []trial, weightOf func(*trial) float64) logistic {
	var l logistic
	total := 0.0
	for i := range trials {
		w := weightOf(&trials[i])
		total += w
		for a, v := range trials[i].signs {
			l.mean[a] += w * v
		}
	}
	for a := range l.mean {
		l.mean[a] /= total
	}
	for i := range trials {
		w := weightOf(&trials[i])
		for a, v := range trials[i].signs {
			l.spread[a] += w * (v - l.mean[a]) * (v - l.mean[a])
		}
	}
	for a := range l.spread {
		l.spread[a] = math.Sqrt(l.spread[a] / total)
	}
	l.mean[signOne], l.spread[signOne] = 0, 1
	return l
}

func (l *logistic) standard(s *signs) signs {
	var x signs
	for a := range s {
		if l.spread[a] > 1e-9 {
			x[a] = (s[a] - l.mean[a]) / l.spread[a]
		}
	}
	return x
}

// odds are the log odds that a prediction with these signs is right.
func (l *logistic) odds(s *signs) float64 {
	x := l.standard(s)
	return dot(&l.weight, &x)
}

func dot(a, b *signs) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// solve solves h·x = g for a symmetric positive h of which the lower half is
// given, by Cholesky's method.
func solve(h *[signCount][signCount]float64, g signs) signs {
	for i := range signCount {
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
	for i := signCount - 1; i >= 0; i-- {
		for k := i + 1; k < signCount; k++ {
			g[i] -= h[k][i] * g[k]
		}
		g[i] /= h[i][i]
	}
	return g
}
