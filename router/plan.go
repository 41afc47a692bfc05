package router

import (
	"slices"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/matcher"
)

// maxStandby is how many agents may take over one task. More would cut the
// deadline into shares too small to work in.
const maxStandby = 3

// plan is what the arithmetic decided: the decision as it goes on record, and
// the parts to dispatch. It is a pure function of the job, the classification and
// the time.
type plan struct {
	decision contract.Decision
	parts    []part
	omitted  []contract.Omitted
	reason   string // why nobody may serve any part; "" when somebody may
	// options are the readings the caller is asked about before anybody may.
	options []contract.ClarificationOption
}

// part is one task to be: what is asked, and who may do it in which order.
type part struct {
	subtask int // index into the classification's subtasks; whole when there are none
	title   string
	intent  string
	domains []string
	// agents may do it: the chosen one, then the standbys.
	agents []*contract.RegistryEntry
	// gone is the one that was chosen, of a part all of whose agents have left the
	// registry since.
	gone string
	// down is set instead of agents when only live state keeps agents out: the
	// best of them, and why. Such a part fails fast; it is not unsupported.
	down *contract.Candidate
}

const whole = -1

// planner holds what the parts of one plan share.
type planner struct {
	job    *job
	view   *View
	query  matcher.Query
	live   matcher.Live
	topk   int
	chosen []*contract.RegistryEntry // distinct, in part order
	plan   *plan
}

func makePlan(j *job, clf contract.Classification, now time.Time) *plan {
	v := j.view
	p := planner{
		job:  j,
		view: v,
		query: matcher.Query{
			PromptBytes:   len(j.req.Content.Prompt),
			Caller:        j.caller,
			Only:          j.only,
			DataClasses:   j.masking.Kinds(),
			Confidence:    clf.Confidence,
			MinConfidence: classifier.MinConfidence(v.Registry.Routing, clf.Source),
			NowMS:         now.UnixMilli(),
		},
		topk: v.Registry.Routing.TopK,
		live: j.live(),
		plan: &plan{decision: contract.Decision{
			Classification:  clf,
			Candidates:      []contract.Candidate{},
			Chosen:          []string{},
			Standby:         []string{},
			RegistryVersion: v.Registry.Version,
		}},
	}
	p.plan.reason, p.plan.options = undecided(j, &clf)
	if j.session.Asked {
		p.plan.options = nil // who was asked already is not asked again
	}
	if p.plan.reason == "" {
		p.matchParts(&clf)
	}
	if p.plan.reason != "" {
		p.showNearest(&clf)
	}
	return p.plan
}

// matchParts finds agents for every part of the request.
func (p *planner) matchParts(clf *contract.Classification) {
	var reasons []string
	for _, pt := range partsOf(p.job, clf) {
		reason := p.matchPart(&pt)
		if reason == "" {
			p.plan.parts = append(p.plan.parts, pt)
			continue
		}
		reasons = append(reasons, reason)
		if pt.subtask != whole {
			p.plan.omitted = append(p.plan.omitted, contract.Omitted{
				Subtask: pt.subtask, Title: pt.title, Intent: pt.intent, Domains: pt.domains, Reason: reason,
			})
		}
	}
	if len(p.plan.parts) == 0 {
		p.plan.reason = reasons[0]
	}
	for _, a := range p.chosen {
		p.plan.decision.Chosen = append(p.plan.decision.Chosen, a.ID)
	}
}

// partsOf lists what is to be matched: each subtask by itself, with the
// parent's intent and domains where it has none of its own, else the whole.
func partsOf(j *job, clf *contract.Classification) []part {
	if len(clf.Subtasks) == 0 {
		return []part{{subtask: whole, title: titleOf(j.prompt), intent: clf.Intent, domains: clf.Domains}}
	}
	parts := make([]part, len(clf.Subtasks))
	for i, s := range clf.Subtasks {
		parts[i] = part{subtask: i, title: s.Title, intent: s.Intent, domains: s.Domains}
		if s.Intent == "" {
			parts[i].intent = clf.Intent
		}
		if len(s.Domains) == 0 {
			parts[i].domains = clf.Domains
		}
	}
	return parts
}

// matchPart fills in who may do the part and shows its candidates. It returns
// why nobody may, "" when somebody may or could if it were up.
func (p *planner) matchPart(pt *part) string {
	q := p.query
	q.Intent, q.Domains = pt.intent, pt.domains
	var res matcher.Result
	p.view.Index.Match(&q, p.live, &res)
	p.plan.decision.CandidatesTotal += res.Total

	first, last, reason := p.choose(&res)
	if first != nil {
		agents := p.view.Index.Agents()
		pt.agents = append(pt.agents, agents[first.Ordinal])
		p.take(agents[first.Ordinal])
		for i := range res.N {
			if c := &res.Candidates[i]; c.Eligible() && c != first && len(pt.agents) <= maxStandby {
				pt.agents = append(pt.agents, agents[c.Ordinal])
			}
		}
		if last != nil && p.plan.decision.TieBreak == nil {
			p.plan.decision.TieBreak = p.view.Index.TieBreak(first, last)
		}
	}
	shown := p.show(&q, &res, pt)
	p.withhold(&q, &res, pt)
	if first == nil && reason == "" {
		pt.down = shown
	}
	return reason
}

// choose picks the agent for one part: the best eligible one within topk
// distinct agents, and the eligible one right behind it. When nobody is
// eligible the reason says why; it is "" when only live state is in the way.
func (p *planner) choose(res *matcher.Result) (first, next *matcher.Candidate, reason string) {
	full := len(p.chosen) >= p.topk
	var crowdedOut, down, unsure, gated bool
	for i := range res.N {
		c := &res.Candidates[i]
		switch {
		case c.Eligible() && first != nil:
			return first, c, ""
		case c.Failed&^matcher.GateState == 0 && full && !p.has(c.Ordinal):
			crowdedOut = true // up or down: live state must not change what becomes of a part
		case c.Eligible():
			first = c
		case c.Failed == matcher.GateState:
			down = true
		case c.Failed.Has(matcher.GateConfidence):
			unsure = true
		case !c.Failed.Has(matcher.GateThreshold):
			gated = true
		}
	}
	switch {
	case first != nil, down && !crowdedOut:
		return first, nil, ""
	case crowdedOut:
		return nil, nil, reasonTopK
	case unsure:
		return nil, nil, fallback.ReasonLowConfidence
	case gated:
		return nil, nil, fallback.ReasonGated
	}
	return nil, nil, fallback.ReasonNoMatch
}

func (p *planner) has(ordinal int32) bool {
	a := p.view.Index.Agents()[ordinal]
	return slices.Contains(p.chosen, a)
}

func (p *planner) take(a *contract.RegistryEntry) {
	if slices.Contains(p.chosen, a) {
		return
	}
	p.chosen = append(p.chosen, a)
}

// show adds the candidates of one part to the decision, with their roles, and
// returns the first that only live state keeps out.
func (p *planner) show(q *matcher.Query, res *matcher.Result, pt *part) *contract.Candidate {
	d := &p.plan.decision
	from := len(d.Candidates)
	downAt := -1
	for i := range res.N {
		c := &res.Candidates[i]
		shown := p.view.Index.Describe(c, q, p.live)
		if pt.subtask != whole {
			shown.Subtask = &pt.subtask
		}
		shown.Role = contract.RoleCandidate
		for k, a := range pt.agents {
			switch {
			case a.ID != shown.AgentID:
			case k == 0:
				shown.Role = contract.RoleChosen
			default:
				shown.Role = contract.RoleStandby
				d.Standby = appendNew(d.Standby, a.ID)
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
	down := d.Candidates[downAt]
	return &down
}

// showNearest fills the candidates of a request nobody may serve with those
// that came closest, so that the decision says what was missing.
func (p *planner) showNearest(clf *contract.Classification) {
	q := p.query
	q.Intent, q.Domains = clf.Intent, clf.Domains
	var res matcher.Result
	p.view.Index.Nearest(&q, p.live, &res)
	p.plan.decision.Candidates = p.plan.decision.Candidates[:0]
	p.plan.decision.CandidatesTotal = res.Total
	p.plan.decision.Hidden = nil
	p.show(&q, &res, &part{subtask: whole})
	p.withhold(&q, &res, &part{subtask: whole})
}

// withhold puts the agents of one part that the caller may not use on record.
func (p *planner) withhold(q *matcher.Query, res *matcher.Result, pt *part) {
	hidden := res.Withheld()
	for i := range hidden {
		c := p.view.Index.Describe(&hidden[i], q, p.live)
		if pt.subtask != whole {
			c.Subtask = &pt.subtask
		}
		p.plan.decision.Hidden = append(p.plan.decision.Hidden, c)
	}
}

func appendNew(ids []string, id string) []string {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}
