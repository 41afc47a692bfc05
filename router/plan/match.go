package plan

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/matcher"
)

// maxStandbys bounds the agents that may take over one task. Each standby reserves
// a share of the deadline, so more of them would leave too little time to each.
const maxStandbys = 3

// reasonTopK is why a subtask is omitted although an agent is eligible for it.
const reasonTopK = "topk_reached"

// planner matches the parts of one plan one after the other.
type planner struct {
	in     *Input
	query  matcher.Query
	chosen []*contract.RegistryEntry // distinct, in part order
	plan   *Plan
}

// matchParts finds agents for every part of the request. The reason of an understood
// part explains a request without any agent better than that of another part.
func (p *planner) matchParts(parts []Part) {
	var reasons []string
	understood := 0
	for i := range parts {
		if parts[i].Intent != contract.Unknown {
			understood++
		}
	}
	for i := range parts {
		part := &parts[i]
		reason, options := p.matchPart(part)
		switch {
		case reason == "":
			p.plan.Parts = append(p.plan.Parts, *part)
			continue
		case options != nil && understood == 1:
			p.plan.Options = options
		case part.Subtask != WholeRequest:
			p.plan.Omitted = append(p.plan.Omitted, newOmitted(part, reason))
		}
		if part.Intent == contract.Unknown {
			reasons = append(reasons, reason)
		} else {
			reasons = append([]string{reason}, reasons...)
		}
	}
	if len(p.plan.Parts) == 0 {
		p.plan.Reason = reasons[0]
	}
	for _, a := range p.chosen {
		p.plan.Decision.Chosen = append(p.plan.Decision.Chosen, a.ID)
	}
}

// newOmitted returns the entry of a part that no agent executes.
func newOmitted(part *Part, reason string) contract.Omitted {
	if part.Intent == contract.Unknown && (reason == fallback.ReasonNoMatch || reason == fallback.ReasonLowConfidence) {
		reason = contract.OmittedNotUnderstood
	}
	return contract.Omitted{Subtask: part.Subtask, Title: part.Title, Intent: part.Intent, Domains: part.Domains, Reason: reason}
}

// matchPart sets the agents of the part and adds its candidates to the decision.
// It returns why no agent may execute the part; "" if one may, or could if it
// were up. If the part has several readings that different agents serve, it returns
// them.
func (p *planner) matchPart(part *Part) (reason string, options []contract.ClarificationOption) {
	q := p.query
	q.Intent, q.Domains, q.Confidence = part.Intent, part.Domains, part.Confidence
	if options := p.resolveIntent(part, &q); options != nil {
		return fallback.ReasonAmbiguous, options
	}
	if options := p.resolveDomain(part); options != nil {
		return fallback.ReasonAmbiguous, options
	}
	var res matcher.Result
	p.in.Index.Match(&q, p.in.Live, &res)
	p.plan.Decision.CandidatesTotal += res.Total
	best, next, reason := p.chooseAgent(&res)
	if reason == "" && len(part.Alternatives) > 0 {
		p.markTied(part)
	}
	if best != nil {
		agents := p.in.Index.Agents()
		part.Agents = append(part.Agents, agents[best.Ordinal].ID)
		p.addChosen(agents[best.Ordinal])
		for i := range res.N {
			if c := &res.Candidates[i]; c.Eligible() && c != best && len(part.Agents) <= maxStandbys {
				part.Agents = append(part.Agents, agents[c.Ordinal].ID)
			}
		}
		if next != nil && p.plan.Decision.TieBreak == nil {
			p.plan.Decision.TieBreak = p.in.Index.TieBreak(best, next)
		}
	}
	down := p.showCandidates(&q, &res, part)
	p.showHidden(&q, &res, part)
	if best == nil && reason == "" {
		part.Down = down
	}
	return reason, nil
}

// chooseAgent returns the best eligible agent of a part within top-k distinct
// agents, and the eligible agent right behind it. If no agent is eligible, the
// reason explains it; it is "" if only live state excludes the agents.
func (p *planner) chooseAgent(res *matcher.Result) (best, next *matcher.Candidate, reason string) {
	full := len(p.chosen) >= p.in.Catalogue.Routing.TopK
	var crowdedOut, down, unsure, gated bool
	for i := range res.N {
		c := &res.Candidates[i]
		switch {
		case c.Eligible() && best != nil:
			return best, c, ""
		case c.Failed&^matcher.GateState == 0 && full && !p.isChosen(c.Ordinal):
			crowdedOut = true // up or down: live state must not change whether a part is omitted
		case c.Eligible():
			best = c
		case c.Failed == matcher.GateState:
			down = true
		case c.Failed.Has(matcher.GateConfidence):
			unsure = true
		case !c.Failed.Has(matcher.GateThreshold):
			gated = true
		}
	}
	switch {
	case best != nil, down && !crowdedOut:
		return best, nil, ""
	case crowdedOut:
		return nil, nil, reasonTopK
	case unsure:
		return nil, nil, fallback.ReasonLowConfidence
	case gated:
		return nil, nil, fallback.ReasonGated
	}
	return nil, nil, fallback.ReasonNoMatch
}

func (p *planner) isChosen(ordinal int32) bool {
	return slices.Contains(p.chosen, p.in.Index.Agents()[ordinal])
}

func (p *planner) addChosen(a *contract.RegistryEntry) {
	if !slices.Contains(p.chosen, a) {
		p.chosen = append(p.chosen, a)
	}
}

// showCandidates adds the candidates of one part to the decision, with their
// roles, and returns the first that only live state excludes.
func (p *planner) showCandidates(q *matcher.Query, res *matcher.Result, part *Part) (down *contract.Candidate) {
	d := &p.plan.Decision
	from := len(d.Candidates)
	downAt := -1
	for i := range res.N {
		c := &res.Candidates[i]
		shown := p.in.Index.Describe(c, q, p.in.Live)
		if part.Subtask != WholeRequest {
			shown.Subtask = &part.Subtask
		}
		shown.Role = contract.RoleCandidate
		for k, id := range part.Agents {
			switch {
			case id != shown.AgentID:
			case k == 0:
				shown.Role = contract.RoleChosen
			default:
				shown.Role = contract.RoleStandby
				d.Standby = appendUnique(d.Standby, id)
			}
		}
		if downAt < 0 && c.Failed == matcher.GateState {
			downAt = from + i
		}
		d.Candidates = append(d.Candidates, shown)
	}
	if downAt < 0 {
		return nil
	}
	first := d.Candidates[downAt]
	return &first
}

// showNearest replaces the candidates of a request without an eligible agent by
// those that came closest, so that the decision shows which requirement they miss.
func (p *planner) showNearest() {
	q := p.query
	q.Intent, q.Domains, q.Confidence = p.in.Classification.Intent, p.in.Classification.Domains, p.in.Classification.Confidence
	var res matcher.Result
	p.in.Index.Nearest(&q, p.in.Live, &res)
	p.plan.Decision.Candidates = p.plan.Decision.Candidates[:0]
	p.plan.Decision.CandidatesTotal = res.Total
	p.plan.Decision.Hidden = nil
	p.showCandidates(&q, &res, &Part{Subtask: WholeRequest})
	p.showHidden(&q, &res, &Part{Subtask: WholeRequest})
}

// showHidden records the agents of one part that the caller may not use.
func (p *planner) showHidden(q *matcher.Query, res *matcher.Result, part *Part) {
	hidden := res.Withheld()
	for i := range hidden {
		c := p.in.Index.Describe(&hidden[i], q, p.in.Live)
		if part.Subtask != WholeRequest {
			c.Subtask = &part.Subtask
		}
		p.plan.Decision.Hidden = append(p.plan.Decision.Hidden, c)
	}
}
