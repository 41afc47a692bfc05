package matcher

import "math/bits"

// Weights are the addends of a score, in hundredths: Intent for the intent,
// Domain for each matched domain up to DomainMax in all, Violation taken off
// once for a violated constraint. Each lies in 0…10,000; Build takes a value
// outside as the nearest bound.
type Weights struct {
	Intent, Domain, DomainMax, Violation int
}

// maxWeight keeps every score well inside an int16.
const maxWeight = 10_000

// DefaultWeights returns the weights of 003 §3: +0.5, +0.3 up to +0.6, −0.2.
func DefaultWeights() Weights {
	return Weights{Intent: 50, Domain: 30, DomainMax: 60, Violation: 20}
}

func (w Weights) clamped() Weights {
	bound := func(v int) int { return min(max(v, 0), maxWeight) }
	return Weights{bound(w.Intent), bound(w.Domain), bound(w.DomainMax), bound(w.Violation)}
}

// domainScore is what matched domains are worth.
func (w *Weights) domainScore(matched int) int {
	return min(w.Domain*matched, w.DomainMax)
}

// traits are the parts of one query that one agent declares.
type traits uint8

const (
	hasDomain0 traits = 1 << iota // the query's first distinct domain
	hasDomain1
	hasDomain2
	hasAny    // "*"
	hasIntent // the query's intent
	isBroad   // may have any of the domains: look them up

	hasDomains = hasDomain0 | hasDomain1 | hasDomain2
)

// baseScore is the score before violations of an agent with the traits t, and the
// number of domains it matches, for a query of asked distinct domains.
func (w *Weights) baseScore(t traits, asked int) (score, matched int) {
	matched = bits.OnesCount8(uint8(t & hasDomains))
	if t&hasAny != 0 && matched < asked {
		matched++
	}
	score = w.domainScore(matched)
	if t&hasIntent != 0 {
		score += w.Intent
	}
	return score, matched
}

// exceedsTokens reports whether a prompt of promptBytes is more than maxTokens
// tokens, at four bytes a token rounded up. No limit (0) is never violated.
func exceedsTokens(promptBytes, maxTokens int) bool {
	return maxTokens > 0 && promptBytes > 0 && (promptBytes-1)/4+1 > maxTokens
}
