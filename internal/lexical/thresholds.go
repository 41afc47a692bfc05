package lexical

import (
	"cmp"
	"math"
	"slices"
)

const (
	// assumedOutOfScope is the expected share of out-of-scope requests, used to
	// choose the accept threshold.
	assumedOutOfScope = 0.18
	// maxLostShare is the share of correct answers that the reject threshold
	// may lose.
	maxLostShare = 0.0075
	// targetPrecision is the required share of correct answers among those
	// accepted.
	targetPrecision = 0.98
	// precisionMargin is added to targetPrecision, because held-out examples
	// are more alike than requests.
	precisionMargin = 0.003
	// minAccepted is the minimum number of accepted predictions for their
	// precision to be significant.
	minAccepted = 100
)

// chooseThresholds chooses, from held-out predictions, the confidence below
// which an intent is rejected, and the confidence from which targetPrecision is
// reached. The latter is infinite if there is none.
func chooseThresholds(c *confidenceCalibration, trials []heldOutPrediction) (unknown, accept float64) {
	type answer struct {
		confidence     float64
		right, foreign bool
	}
	answers := make([]answer, len(trials))
	var own, right, foreign float64
	for i := range trials {
		t := &trials[i]
		answers[i] = answer{roundConfidence(c.confidence(&t.features)), t.correct, t.outOfScope}
		switch {
		case t.outOfScope:
			foreign++
		case t.correct:
			right++
			own++
		default:
			own++
		}
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.confidence, b.confidence) })
	lost := 0.0
	for _, a := range answers {
		unknown = a.confidence
		if a.right {
			if lost++; lost > maxLostShare*right {
				break
			}
		}
	}
	weight := 0.0
	if foreign > 0 {
		weight = assumedOutOfScope / (1 - assumedOutOfScope) * own / foreign
	}
	accept = math.Inf(1)
	var accepted, correct, count float64
	for i, a := range slices.Backward(answers) {
		switch {
		case a.foreign:
			accepted += weight
		case a.right:
			correct++
			accepted++
		default:
			accepted++
		}
		count++
		tied := i > 0 && answers[i-1].confidence == a.confidence
		if !tied && count >= minAccepted && correct >= (targetPrecision+precisionMargin)*accepted {
			accept = a.confidence
		}
	}
	return unknown, max(accept, unknown)
}
