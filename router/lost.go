package router

import (
	"slices"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/matcher"
)

// lost reports whether nothing of what a request was taken for is left to be seen,
// and something was taken away. Then it is shown as one that nobody understood:
// else who guesses finds out which labels there are. Of a model's word nothing
// needs to be missing, it knows hidden labels and unknown ones alike.
func (s *sight) lost(c *contract.Classification) bool {
	visible := func(label string) bool { return label != contract.Unknown && s.intent(label) == label }
	if s == nil || s.every || visible(c.Intent) {
		return false
	}
	hidden := c.Source != contract.SourceLexical || c.Intent != contract.Unknown || !s.seesAll(c.Domains)
	for i := range c.Subtasks {
		sub := &c.Subtasks[i]
		if sub.Intent != "" && visible(sub.Intent) {
			return false
		}
		hidden = hidden || sub.Intent != "" || !s.seesAll(sub.Domains)
	}
	return hidden
}

// lostIn is lost of a decision. Where an agent that the caller may see serves a part
// all the same, for its domains, something is left.
func (s *sight) lostIn(d *contract.Decision) bool {
	return d != nil && s.lost(&d.Classification) && !slices.ContainsFunc(d.Candidates, func(c contract.Candidate) bool {
		onlyDown := !slices.ContainsFunc(c.Gates, func(g contract.Gate) bool { return g.Gate != "state" })
		return s.caller.MaySee(c.AgentID) && (c.Role != contract.RoleCandidate || onlyDown)
	})
}

// seesAll reports whether none of the domains is hidden.
func (s *sight) seesAll(domains []string) bool {
	return slices.Equal(s.domains(domains), domains)
}

// forgotten is a classification as the lexical classifier has it of words that say
// nothing to it.
func (s *sight) forgotten(c *contract.Classification) contract.Classification {
	shown := contract.Classification{
		Intent: contract.Unknown, Domains: s.known(c.Domains), Subtasks: []contract.Subtask{},
		Source: c.Source, Reason: c.Reason, LatencyMS: c.LatencyMS, ModelUse: silent(c.ModelUse),
	}
	if shown.Reason == classifier.ReasonTooManyParts {
		shown.Reason = ""
	}
	if c.Cascade != nil {
		cascade := *c.Cascade
		cascade.Intent, cascade.Confidence, cascade.Agrees = contract.Unknown, 0, nil
		shown.Cascade = &cascade
	}
	return shown
}

// forgottenIn is a decision with its near misses as they are for what is left of the
// classification.
func (s *sight) forgottenIn(d *contract.Decision) *contract.Decision {
	shown := *d
	shown.Hidden, shown.TieBreak = nil, nil
	shown.Classification = s.forgotten(&d.Classification)
	shown.Candidates = []contract.Candidate{}
	for _, c := range d.Candidates {
		if !s.caller.MaySee(c.AgentID) || c.Subtask != nil || !counts(c.MatchedDomains, shown.Classification.Domains) {
			continue
		}
		c.Gates = slices.DeleteFunc(slices.Clone(c.Gates), func(g contract.Gate) bool { return g.Gate == "confidence" })
		c.Gates = append(c.Gates, s.unsure(d.Classification.Source)...)
		shown.Candidates = append(shown.Candidates, c)
	}
	shown.CandidatesTotal = len(shown.Candidates)
	return &shown
}

// counts reports whether an agent that matched these domains scores the same for
// what is left of them: "*" counts one that nothing else matched.
func counts(matched, left []string) bool {
	if len(matched) == 0 {
		return false
	}
	return !slices.Contains(matched, contract.AnyDomain) ||
		slices.ContainsFunc(left, func(domain string) bool { return !slices.Contains(matched, domain) })
}

// unsure is the gate that what was not understood does not pass, in the words of the
// matcher.
func (s *sight) unsure(source contract.Source) []contract.Gate {
	if s.view == nil || len(s.view.Registry.Agents) == 0 {
		return nil
	}
	q := matcher.Query{MinConfidence: classifier.MinConfidence(s.view.Registry.Routing, source)}
	if q.MinConfidence <= 0 {
		return nil
	}
	return s.view.Index.Describe(&matcher.Candidate{Failed: matcher.GateConfidence}, &q, nil).Gates
}

// seen is why nobody serves the request as its caller may see it.
func (s *sight) seen(u *fallback.Unmet) *fallback.Unmet {
	if !s.lostIn(u.Decision) {
		return u
	}
	shown := *u
	shown.Decision = s.forgottenIn(u.Decision)
	if len(shown.Decision.Candidates) == 0 {
		shown.Reason = fallback.ReasonNoMatch
	}
	return &shown
}

// silent is the account of the calls without what the model said.
func silent(use *contract.ModelUse) *contract.ModelUse {
	if use == nil {
		return nil
	}
	shown := *use
	shown.Calls = slices.Clone(use.Calls)
	for i := range shown.Calls {
		shown.Calls[i].Reply, shown.Calls[i].Detail = "", ""
	}
	return &shown
}
