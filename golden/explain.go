package golden

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/routediff"
)

// explainDecision returns in one line why a request was read and decided like this: the
// strongest evidence for the reading, then tied intents and parts that were not
// understood, then domains that were implied instead of the expected ones, then what
// excluded the expected agents.
func explainDecision(d *contract.Decision, expect *Expect) string {
	clf := &d.Classification
	var parts []string
	switch {
	case clf.Source == contract.SourceLLM || clf.Source == contract.SourceCache:
		parts = append(parts, "the model replied so")
	case len(clf.Evidence) > 0:
		e := strongestFor(clf)
		parts = append(parts, fmt.Sprintf("%s %q speaks for %s (%.2f)", e.Kind, e.Text, e.Intent, e.Strength))
	default:
		parts = append(parts, "no text of the registry speaks for an intent")
	}
	if len(d.Chosen) == 0 && len(clf.Alternatives) > 0 {
		next := clf.Alternatives[0]
		text := fmt.Sprintf("%s follows with %.2f", next.Intent, next.Confidence)
		switch {
		case clf.Intent == contract.Unknown && clf.RequiredConfidence > next.Confidence:
			confidence, required := plaintext.FormatUnequal(next.Confidence, clf.RequiredConfidence)
			text = fmt.Sprintf("the nearest intent is %s with %s, and this registry requires %s", next.Intent, confidence, required)
		case clf.Intent == contract.Unknown:
			text = fmt.Sprintf("the nearest intent is %s with %.2f", next.Intent, next.Confidence)
		}
		parts = append(parts, text)
	}
	if clf.Tied {
		text := "one agent serves several of the likeliest intents, so their confidences are added up"
		if clf.TiedConfidence > 0 {
			text += fmt.Sprintf(" to %.2f", clf.TiedConfidence)
		}
		parts = append(parts, text)
	}
	for _, s := range clf.Subtasks {
		if s.Intent == contract.Unknown {
			parts = append(parts, fmt.Sprintf("the part %q is not understood", s.Title))
		}
	}
	for _, o := range clf.DomainOrigins {
		if o.Origin == contract.DomainImplied && expect.Domains != nil && !slices.Contains(expect.Domains, o.Domain) {
			parts = append(parts, o.Domain+" is implied, because the text has no name and no alias of a domain of the intent")
		}
	}
	missing := slices.DeleteFunc(routediff.SortedSet(expect.Agents), func(id string) bool { return slices.Contains(d.Chosen, id) })
	if expect.Agents == nil && len(d.Chosen) == 0 && len(d.Candidates) > 0 {
		missing = append(missing, d.Candidates[0].AgentID) // the nearest agent
	}
	for _, id := range missing {
		parts = append(parts, id+" "+explainExclusion(d, id))
	}
	return strings.Join(parts, "; ")
}

// strongestFor returns the strongest evidence for the intent of the classification or, if that is
// unknown, for the nearest one. Without any, it returns the strongest of all.
func strongestFor(clf *contract.Classification) *contract.Evidence {
	intent := clf.Intent
	if intent == contract.Unknown && len(clf.Alternatives) > 0 {
		intent = clf.Alternatives[0].Intent
	}
	i := slices.IndexFunc(clf.Evidence, func(e contract.Evidence) bool { return e.Intent == intent })
	return &clf.Evidence[max(i, 0)]
}

// explainExclusion returns why the agent was not chosen.
func explainExclusion(d *contract.Decision, id string) string {
	i := slices.IndexFunc(d.Candidates, func(c contract.Candidate) bool { return c.AgentID == id })
	if i < 0 {
		return "is no candidate"
	}
	c := &d.Candidates[i]
	if len(c.Gates) == 0 {
		return fmt.Sprintf("has the score %.2f and is not chosen", c.Score)
	}
	reasons := make([]string, len(c.Gates))
	for i, g := range c.Gates {
		reasons[i] = g.Reason
	}
	return "is excluded: " + strings.Join(reasons, " and ")
}
