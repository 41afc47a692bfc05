package matcher

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// GateSet is a set of gates that a candidate did not pass.
type GateSet uint16

// The gates. Candidates always pass GateEntitlement, because an agent that the
// caller may not use is a withheld agent instead.
const (
	GateState       GateSet = 1 << iota // disabled, circuit breaker open, or at its limit
	GateScopes                          // the caller lacks a required scope
	GateTenant                          // the agent serves other tenants
	GateDataClasses                     // the request contains no data of a required kind
	GateThreshold                       // the score is below the match threshold
	GateConfidence                      // the confidence of the classification is too low
	GateEntitlement                     // the caller may not use the agent
	GateAcceptance                      // the request contains data of a kind that the agent does not accept
)

// Has reports whether the gate is in the set.
func (s GateSet) Has(gate GateSet) bool { return s&gate == gate }

// failedGates returns the gates that the agent with the score does not pass, except
// for GateState and GateEntitlement.
func (x *Index) failedGates(ord int32, score int, q *Query) GateSet {
	var failed GateSet
	if x.profiles[ord].hasRequirements {
		failed |= unmetRequirements(x.agents[ord], q)
	}
	if score < x.threshold {
		failed |= GateThreshold
	}
	if !q.isConfident() {
		failed |= GateConfidence
	}
	return failed
}

// isConfident reports whether the confidence suffices. It is false if either value
// is NaN, so that the gate fails closed.
func (q *Query) isConfident() bool { return q.Confidence >= q.MinConfidence }

// unmetRequirements returns the gates of requirements that the caller or the request
// does not meet.
func unmetRequirements(agent *contract.RegistryEntry, q *Query) GateSet {
	r, c := &agent.Requires, q.callerOrNone()
	var failed GateSet
	for _, scope := range r.Scopes {
		if !c.HasScope(scope) {
			failed |= GateScopes
			break
		}
	}
	if len(r.Tenants) > 0 && (c.Tenant == "" || !slices.Contains(r.Tenants, c.Tenant)) {
		failed |= GateTenant
	}
	for _, class := range r.DataClasses {
		if !slices.Contains(q.DataClasses, class) {
			failed |= GateDataClasses
			break
		}
	}
	if limitsClasses(agent) {
		refused := func(class string) bool { return !slices.Contains(agent.AcceptsDataClasses, class) }
		if slices.ContainsFunc(q.DataClasses, refused) || slices.ContainsFunc(q.InputClasses, refused) {
			failed |= GateAcceptance
		}
	}
	return failed
}

// limitsClasses reports whether the agent does not accept data of every kind.
func limitsClasses(agent *contract.RegistryEntry) bool {
	return agent.AcceptsDataClasses != nil && !slices.Contains(agent.AcceptsDataClasses, contract.AllClasses)
}
