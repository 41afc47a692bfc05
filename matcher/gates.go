package matcher

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// GateSet is a set of conditions a candidate did not meet.
type GateSet uint16

// The gates. A candidate never fails that of entitlement: an agent the caller may
// not use is no candidate at all, and stands among the withheld.
const (
	GateState       GateSet = 1 << iota // disabled, breaker open or at its limit
	GateScopes                          // the caller lacks a required scope
	GateTenant                          // the agent serves other tenants
	GateDataClasses                     // the request holds no data of a kind the agent is for
	GateThreshold                       // the score is below the match threshold
	GateConfidence                      // the classifier was not sure enough
	GateEntitlement                     // the caller may not use the agent
)

// Has reports whether the gate is in the set.
func (s GateSet) Has(gate GateSet) bool { return s&gate == gate }

// failedGates returns what, beside its live state, keeps the agent with the score
// from being eligible.
func (x *Index) failedGates(ord int32, score int, q *Query) GateSet {
	var failed GateSet
	if x.profiles[ord].hasRequirements {
		failed |= unmetRequirements(&x.agents[ord].Requires, q)
	}
	if score < x.threshold {
		failed |= GateThreshold
	}
	if !q.isConfident() {
		failed |= GateConfidence
	}
	return failed
}

// isConfident is false for a NaN on either side: a gate fails closed.
func (q *Query) isConfident() bool { return q.Confidence >= q.MinConfidence }

// unmetRequirements returns the requirements the caller and the request do not meet.
func unmetRequirements(r *contract.Requires, q *Query) GateSet {
	c := q.callerOrNone()
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
	return failed
}
