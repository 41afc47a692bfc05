// Package routediff compares two decisions on the same text and explains why they
// differ: by the classification, and by the scores and gates of the agents that only
// one of them chose. It takes values and returns values.
//
//	before := &routediff.Side{Label: "before", Outcome: "dispatch", Agents: d.Chosen, Decision: d}
//	if len(routediff.Compare(before, after)) > 0 {
//		why := routediff.Explain(before, after)
//	}
package routediff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// Side is one of the two decisions. It is not changed.
type Side struct {
	Label      string // completes "chosen", for example "by A" or "before"
	Outcome    string // dispatch, clarify, …
	Reason     string // of a fallback or a clarification; "" without
	Agents     []string
	Intent     string
	Domains    []string
	Confidence float64
	Decision   *contract.Decision
	// Catalogue is that of the decision; nil if it is not known.
	Catalogue *capabilities.Catalogue
}

// Compare returns what differs: outcome, agents, intent, domains.
func Compare(a, b *Side) (what []string) {
	if a.Outcome != b.Outcome {
		what = append(what, "outcome")
	}
	if !SameSet(a.Agents, b.Agents) {
		what = append(what, "agents")
	}
	if a.Intent != b.Intent {
		what = append(what, "intent")
	}
	if !SameSet(a.Domains, b.Domains) {
		what = append(what, "domains")
	}
	return what
}

// Explain returns the reasons of the differences.
func Explain(a, b *Side) []string {
	why := []string{}
	if a.Intent != b.Intent || !SameSet(a.Domains, b.Domains) || a.Confidence != b.Confidence {
		why = append(why, fmt.Sprintf("read as %s %s, as %s %s", a.formatClassification(), a.Label, b.formatClassification(), b.Label))
	}
	why = append(why, explainChosen(a, b)...)
	why = append(why, explainChosen(b, a)...)
	if a.Outcome != b.Outcome {
		why = append(why, fmt.Sprintf("outcome: %s %s, %s %s", a.formatOutcome(), a.Label, b.formatOutcome(), b.Label))
	}
	return why
}

// explainChosen explains the agents that only the side chose.
func explainChosen(side, other *Side) (why []string) {
	for _, id := range SortedSet(side.Agents) {
		if !slices.Contains(other.Agents, id) {
			why = append(why, fmt.Sprintf("%s: chosen %s (%s), not %s: %s", id, side.Label, side.explainAgent(id), other.Label, other.explainAgent(id)))
		}
	}
	return why
}

func (s *Side) formatClassification() string {
	if d := s.Decision; d != nil && d.Classification.RequiredConfidence > 0 {
		confidence, required := plaintext.FormatUnequal(s.Confidence, d.Classification.RequiredConfidence)
		return fmt.Sprintf("%s (%s) with confidence %s, below the %s that the registry requires,", s.Intent, FormatSet(s.Domains), confidence, required)
	}
	return fmt.Sprintf("%s (%s) with confidence %.2f", s.Intent, FormatSet(s.Domains), s.Confidence)
}

func (s *Side) formatOutcome() string {
	if s.Reason == "" {
		return s.Outcome
	}
	return fmt.Sprintf("%s (%s)", s.Outcome, s.Reason)
}

// explainAgent describes the result of an agent in the decision.
func (s *Side) explainAgent(id string) string {
	d := s.Decision
	if s.Catalogue != nil && s.Catalogue.Agent(id) == nil {
		return "it is not in that registry"
	}
	i := slices.IndexFunc(d.Candidates, func(c contract.Candidate) bool { return c.AgentID == id })
	switch {
	case i < 0 && s.Catalogue == nil:
		return "no candidate: it was not in the registry, or declared nothing that scored the match threshold"
	case i < 0:
		return "no candidate: what it declares scores below the match threshold"
	}
	c := &d.Candidates[i]
	text := fmt.Sprintf("score %.2f = intent %.2f + domains %.2f", c.Score, c.Parts.Intent, c.Parts.Domains)
	if c.Parts.Constraints != 0 {
		text += fmt.Sprintf(" − constraints %.2f", -c.Parts.Constraints)
	}
	parts := []string{text}
	for _, g := range c.Gates {
		parts = append(parts, g.Reason)
	}
	if c.Eligible && c.Role != contract.RoleChosen {
		behind := "eligible, behind another"
		if t := d.TieBreak; t != nil && t.Over == id {
			behind += " by " + t.Rule
		}
		parts = append(parts, behind)
	}
	return strings.Join(parts, "; ")
}

// SameSet reports whether both have the same elements, in any order.
func SameSet(a, b []string) bool { return slices.Equal(SortedSet(a), SortedSet(b)) }

// SortedSet returns the distinct elements, sorted.
func SortedSet(set []string) []string {
	set = slices.Clone(set)
	slices.Sort(set)
	return slices.Compact(set)
}

// FormatSet formats a set: "a + b", or "none".
func FormatSet(set []string) string { return cmp.Or(strings.Join(SortedSet(set), " + "), "none") }
