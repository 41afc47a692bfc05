package plan

import (
	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/requests"
)

// StoredParts returns the parts in the form of the stored request.
func (p *Plan) StoredParts() []requests.Part {
	parts := make([]requests.Part, len(p.Parts))
	for i := range p.Parts {
		part := &p.Parts[i]
		parts[i] = requests.Part{
			Subtask: part.Subtask, Title: part.Title, Intent: part.Intent, Domains: part.Domains,
			Confidence: part.Confidence, Alternatives: part.Alternatives, Agents: []string{}, Unavailable: part.Down,
		}
		for _, a := range part.Agents {
			parts[i].Agents = append(parts[i].Agents, a.ID)
		}
	}
	return parts
}

// Restore rebuilds the plan of a stored request. The decision stays as it was:
// agents that have left the registry since are dropped, and no agent is added.
func Restore(rec *requests.Record, fleet *capabilities.Fleet) *Plan {
	p := &Plan{Decision: *rec.Decision, Omitted: rec.Omitted, Parts: make([]Part, len(rec.Parts))}
	for i := range rec.Parts {
		stored := &rec.Parts[i]
		part := Part{
			Subtask: stored.Subtask, Title: stored.Title, Intent: stored.Intent, Domains: stored.Domains,
			Confidence: stored.Confidence, Alternatives: stored.Alternatives, Down: stored.Unavailable,
		}
		if len(stored.Agents) > 0 {
			part.ChosenID = stored.Agents[0]
		}
		for _, id := range stored.Agents {
			if agent := fleet.Agent(id); agent != nil && rec.Caller.MayUse(id) {
				part.Agents = append(part.Agents, agent)
			}
		}
		p.Parts[i] = part
	}
	return p
}
