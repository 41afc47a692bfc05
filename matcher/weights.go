package matcher

import (
	"math/bits"

	"github.com/caprouter/caprouter/contract"
)

// Weights are the parts of a score in hundredths: Intent for the intent, Domain for
// each matched domain up to DomainMax in total, and Violation, which is subtracted once
// if a constraint is violated. Build clamps each to 0…10,000.
type Weights struct {
	Intent, Domain, DomainMax, Violation int
}

// maxWeight keeps every score within an int16.
const maxWeight = 10_000

// DefaultWeights returns +0.5, +0.3 up to +0.6, and −0.2.
func DefaultWeights() Weights {
	return Weights{Intent: 50, Domain: 30, DomainMax: 60, Violation: 20}
}

func (w Weights) clamped() Weights {
	bound := func(v int) int { return min(max(v, 0), maxWeight) }
	return Weights{bound(w.Intent), bound(w.Domain), bound(w.DomainMax), bound(w.Violation)}
}

// domainScore returns the score of matched domains.
func (w *Weights) domainScore(matched int) int {
	return min(w.Domain*matched, w.DomainMax)
}

// traits are the parts of a query that an agent declares.
type traits uint8

const (
	hasDomain0 traits = 1 << iota // the query's first distinct domain
	hasDomain1
	hasDomain2
	hasAny    // "*"
	hasIntent // the query's intent
	isBroad   // may declare any of the domains: see lookupTraits

	hasDomains = hasDomain0 | hasDomain1 | hasDomain2
)

// With more domains in a query, hasDomain0<<i would set hasAny. This does not compile
// then.
var _ [3 - contract.MaxDomains]struct{}

// baseScore returns the score before violations of an agent with the traits t, and the
// number of domains that it matches of the distinct ones of the query.
func (w *Weights) baseScore(t traits, domainCount int) (score, matched int) {
	matched = bits.OnesCount8(uint8(t & hasDomains))
	if t&hasAny != 0 && matched < domainCount {
		matched++
	}
	score = w.domainScore(matched)
	if t&hasIntent != 0 {
		score += w.Intent
	}
	return score, matched
}

// exceedsTokens reports whether a prompt has more than maxTokens tokens, estimated as
// four bytes each and rounded up. 0 means no limit.
func exceedsTokens(promptBytes, maxTokens int) bool {
	return maxTokens > 0 && promptBytes > 0 && (promptBytes-1)/4+1 > maxTokens
}
