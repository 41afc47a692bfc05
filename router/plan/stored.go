package plan

import "github.com/caprouter/caprouter/internal/requests"

// StoredParts returns the parts in the form of the stored request.
func (p *Plan) StoredParts() []requests.Part {
	parts := make([]requests.Part, len(p.Parts))
	for i := range p.Parts {
		part := &p.Parts[i]
		parts[i] = requests.Part{
			Subtask: part.Subtask, Title: part.Title, Intent: part.Intent, Domains: part.Domains,
			Confidence: part.Confidence, Alternatives: part.Alternatives, Agents: append([]string{}, part.Agents...), Unavailable: part.Down,
		}
	}
	return parts
}

// Restore rebuilds the plan of a stored request as it was. Recheck decides which of
// its agents may still get a part.
func Restore(rec *requests.Record) *Plan {
	p := &Plan{Decision: *rec.Decision, Omitted: rec.Omitted, Parts: make([]Part, len(rec.Parts))}
	for i := range rec.Parts {
		stored := &rec.Parts[i]
		p.Parts[i] = Part{
			Subtask: stored.Subtask, Title: stored.Title, Intent: stored.Intent, Domains: stored.Domains,
			Confidence: stored.Confidence, Alternatives: stored.Alternatives, Agents: stored.Agents, Down: stored.Unavailable,
		}
	}
	return p
}
