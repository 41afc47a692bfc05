package fallback

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// minNearestReading is the least confidence of a rejected intent that is offered as the
// nearest reading. It is lower than minNearIntent, because a reading is offered to an
// operator as a condition, and a text for an end user states it as a fact.
const minNearestReading = 0.2

// nearestReading returns the most likely reading of the request that was not sure enough, with
// an agent that declares its intent, or nil. If the agent serves such requests already, the
// request is missing in its examples, and no new agent is needed. If a domain or access is
// what the request lacks, an example would change nothing.
func (a *explainer) nearestReading() *contract.NearestReading {
	clf := &a.Decision.Classification
	readings := clf.Alternatives
	switch {
	case a.Reason == ReasonLowConfidence, a.Reason == ReasonAmbiguous:
		readings = append([]contract.IntentScore{{Intent: clf.Intent, Confidence: clf.Confidence}}, readings...)
	case a.Reason != ReasonNoMatch || a.isUnderstood():
		return nil
	}
	for _, reading := range readings {
		if agent := a.agentWith(reading.Intent); agent != "" && reading.Confidence >= minNearestReading {
			return &contract.NearestReading{AgentID: agent, Intent: reading.Intent, Confidence: reading.Confidence}
		}
	}
	return nil
}

// agentWith returns the nearest usable agent that declares the intent, or "".
func (a *explainer) agentWith(intent string) string {
	declares := func(agent *contract.RegistryEntry) bool {
		return agent != nil && (a.OnlyAgent == "" || agent.ID == a.OnlyAgent) && slices.Contains(agent.Match.Intent, intent)
	}
	for i := range a.nearMisses {
		if id := a.nearMisses[i].AgentID; declares(a.Catalogue.Agent(id)) {
			return id
		}
	}
	if i := slices.IndexFunc(a.usable.List(), declares); i >= 0 {
		return a.usable.List()[i].ID
	}
	return ""
}

// hasReading reports whether the caller may know the agent and the intent of a reading.
func (a *explainer) hasReading(r *contract.NearestReading) bool {
	return r != nil && a.usable.Has(r.AgentID) && slices.Contains(a.Catalogue.Agent(r.AgentID).Match.Intent, r.Intent)
}
