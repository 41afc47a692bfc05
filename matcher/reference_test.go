package matcher_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// outcome is the expected result of a match.
type outcome struct {
	Candidates []describedCandidate
	Total      int
	Hidden     int
	Withheld   []describedCandidate
}

type describedCandidate struct {
	ID       string
	Score    int
	Parts    [3]int // intent, domains, constraints
	Domains  []string
	Gates    []string
	Eligible bool
}

// setup contains all inputs of a match. Live states are by agent id.
type setup struct {
	Agents    []*contract.RegistryEntry
	Weights   matcher.Weights
	Threshold int
	Live      map[string]*matcher.LiveState
	Query     matcher.Query
}

// indexed matches with the index.
func (s *setup) indexed(nearest bool) outcome {
	x := matcher.Build(s.Agents, s.Weights, s.Threshold)
	live := make(matcher.Live, len(s.Agents))
	for ord, a := range x.Agents() {
		live[ord] = s.Live[a.ID]
	}
	var res matcher.Result
	if nearest {
		x.Nearest(&s.Query, live, &res)
	} else {
		x.Match(&s.Query, live, &res)
	}
	return outcome{
		Candidates: s.described(x, live, res.Best()), Total: res.Total,
		Hidden: res.Hidden, Withheld: s.described(x, live, res.Withheld()),
	}
}

func (s *setup) described(x *matcher.Index, live matcher.Live, list []matcher.Candidate) []describedCandidate {
	out := []describedCandidate{}
	for i := range list {
		c := x.Describe(&list[i], &s.Query, live)
		gates := make([]string, 0, len(c.Gates))
		for _, g := range c.Gates {
			if !slices.Contains(gates, g.Gate) {
				gates = append(gates, g.Gate)
			}
		}
		out = append(out, describedCandidate{
			ID: c.AgentID, Score: hundredths(c.Score),
			Parts:   [3]int{hundredths(c.Parts.Intent), hundredths(c.Parts.Domains), hundredths(c.Parts.Constraints)},
			Domains: c.MatchedDomains, Gates: gates, Eligible: c.Eligible,
		})
	}
	return out
}

func hundredths(decimal float64) int { return int(math.Round(decimal * 100)) }

// naive matches with one loop over all agents that follows the specification, and shares only types
// with the index.
func (s *setup) naive(nearest bool) outcome {
	hitAt := s.Threshold
	if nearest {
		hitAt = 1
	}
	out := outcome{Candidates: []describedCandidate{}, Withheld: []describedCandidate{}}
	var eligible, ineligible []describedCandidate
	for _, a := range s.Agents {
		if s.Query.Only != "" && s.Query.Only != a.ID {
			continue
		}
		c := s.score(a)
		if c.Parts[0]+c.Parts[1] < hitAt {
			continue
		}
		if !s.isPermitted(a) {
			out.Hidden++
			c.Gates = append([]string{"entitlement"}, s.gates(a, c.Score)...)
			out.Withheld = append(out.Withheld, c)
			continue
		}
		out.Total++
		c.Gates = s.gates(a, c.Score)
		c.Eligible = len(c.Gates) == 0
		if c.Eligible {
			eligible = append(eligible, c)
		} else {
			ineligible = append(ineligible, c)
		}
	}
	slices.SortFunc(eligible, s.order)
	slices.SortFunc(ineligible, s.order)
	eligible = eligible[:min(len(eligible), 20)]
	ineligible = ineligible[:min(len(ineligible), 20-len(eligible))]
	out.Candidates = append(append(out.Candidates, eligible...), ineligible...)
	slices.SortFunc(out.Candidates, s.order)
	slices.SortFunc(out.Withheld, s.order)
	out.Withheld = out.Withheld[:min(len(out.Withheld), 20)]
	return out
}

// score: +intent, +domain each up to the maximum, −violation once.
func (s *setup) score(a *contract.RegistryEntry) describedCandidate {
	q := &s.Query
	c := describedCandidate{ID: a.ID, Domains: []string{}}
	if q.Intent != "unknown" && slices.Contains(a.Match.Intent, q.Intent) {
		c.Parts[0] = s.Weights.Intent
	}
	for _, tied := range q.Tied {
		if tied == "unknown" || !slices.Contains(a.Match.Intent, tied) {
			c.Parts[0] = 0
		}
	}
	var asked []string
	for _, d := range q.Domains {
		if !slices.Contains(asked, d) && len(asked) < 3 {
			asked = append(asked, d)
		}
	}
	for _, d := range asked {
		if d != "unknown" && d != "*" && slices.Contains(a.Match.Domains, d) {
			c.Domains = append(c.Domains, d)
		}
	}
	if len(c.Domains) < len(asked) && slices.Contains(a.Match.Domains, "*") {
		c.Domains = append(c.Domains, "*")
	}
	c.Parts[1] = min(len(c.Domains)*s.Weights.Domain, s.Weights.DomainMax)
	tokens := int(math.Ceil(float64(q.PromptBytes) / 4))
	if limit := a.Constraints.MaxTokens; limit > 0 && tokens > limit {
		c.Parts[2] = -s.Weights.Violation
	}
	c.Score = c.Parts[0] + c.Parts[1] + c.Parts[2]
	return c
}

func (s *setup) isPermitted(a *contract.RegistryEntry) bool {
	c := s.Query.Caller
	return c != nil && (c.AllAgents || c.AllScopes || slices.Contains(c.Scopes, "agent:"+a.ID))
}

func (s *setup) gates(a *contract.RegistryEntry, score int) []string {
	q, r := &s.Query, &a.Requires
	caller := q.Caller
	if caller == nil {
		caller = &contract.Caller{}
	}
	gates := []string{}
	if l := s.Live[a.ID]; l != nil {
		if state := l.State(); state != contract.AgentActive && state != contract.AgentDegraded || l.OpenUntil() > q.NowMS || l.Limit() > 0 && l.InFlight() >= l.Limit() {
			gates = append(gates, "state")
		}
	}
	for _, scope := range r.Scopes {
		if !caller.AllScopes && !slices.Contains(caller.Scopes, scope) {
			gates = append(gates, "scopes")
			break
		}
	}
	if len(r.Tenants) > 0 && (caller.Tenant == "" || !slices.Contains(r.Tenants, caller.Tenant)) {
		gates = append(gates, "tenant")
	}
	for _, class := range r.DataClasses {
		if !slices.Contains(q.DataClasses, class) {
			gates = append(gates, "data_classes")
			break
		}
	}
	for _, class := range slices.Concat(q.DataClasses, q.InputClasses) {
		if accepted := a.AcceptsDataClasses; accepted != nil && !slices.Contains(accepted, "all") && !slices.Contains(accepted, class) {
			gates = append(gates, "accepts_data_classes")
			break
		}
	}
	if score < s.Threshold {
		gates = append(gates, "threshold")
	}
	if q.Confidence < q.MinConfidence {
		gates = append(gates, "confidence")
	}
	return gates
}

// order compares by score, matched domains, fewest declared labels ("*" counts as all), priority,
// id.
func (s *setup) order(a, b describedCandidate) int {
	ea, eb := s.agent(a.ID), s.agent(b.ID)
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(len(b.Domains), len(a.Domains)),
		cmp.Compare(declared(ea), declared(eb)),
		cmp.Compare(eb.Priority, ea.Priority),
		cmp.Compare(ea.ID, eb.ID),
	)
}

func (s *setup) agent(id string) *contract.RegistryEntry {
	return s.Agents[slices.IndexFunc(s.Agents, func(a *contract.RegistryEntry) bool { return a.ID == id })]
}

func declared(a *contract.RegistryEntry) int {
	intents, domains := map[string]bool{}, map[string]bool{}
	for _, i := range a.Match.Intent {
		intents[i] = true
	}
	for _, d := range a.Match.Domains {
		domains[d] = true
	}
	n := len(intents) + len(domains)
	if domains["*"] {
		n += 1_000_000
	}
	return n
}
