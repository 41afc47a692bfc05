package lexical

import (
	"cmp"
	"math"
	"slices"
)

const (
	// assumedOutOfScope is the share of requests that are taken to ask for something
	// no intent is declared for, where the confidence to accept is chosen.
	assumedOutOfScope = 0.18
	// maxLostShare is the share of right answers that may be lost to the threshold
	// below which an intent is unknown.
	maxLostShare = 0.0075
	// targetPrecision is the share of accepted answers that are to be right.
	targetPrecision = 0.98
	// precisionMargin is what the trials must show beyond that: they are made of the
	// registry's own examples, requests are not.
	precisionMargin = 0.003
	// minAccepted is how many trials must have been accepted for their share
	// of right ones to mean anything.
	minAccepted = 100
)

// chooseThresholds chooses, from the trials alone, the confidence below which an intent
// is not named and that from which answers are right as often as precise says.
// The latter is infinite when no confidence is.
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
