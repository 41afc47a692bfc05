package app

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// oracle says who may be chosen, by one loop over the registry that follows the
// rules' text (003 §3) and shares nothing with the matcher but the types.
type oracle struct {
	registry *capabilities.Catalogue
	// card reports whether a text holds the card number of these tests: data of
	// the one kind an agent of theirs is for.
	card func(text string) bool
}

// asked is a request as the oracle sees it.
type asked struct {
	req    *contract.Request
	caller *contract.Caller
	resp   *contract.Response
}

// part is what one task is matched by.
type askedPart struct {
	subtask    int // −1 = there are none
	intent     string
	domains    []string
	confidence float64
	tied       []string // further intents that an agent must declare
}

func (o *oracle) partsAsked(q *asked) []askedPart {
	clf := &q.resp.Decision.Classification
	if len(clf.Subtasks) == 0 {
		return []askedPart{o.withTie(q, askedPart{subtask: -1, intent: clf.Intent, domains: clf.Domains, confidence: clf.Confidence}, clf.Alternatives, clf.Tied)}
	}
	var parts []askedPart
	for i, s := range clf.Subtasks {
		p := askedPart{subtask: i, intent: s.Intent, domains: s.Domains, confidence: s.Confidence}
		if s.Confidence == 0 {
			p.confidence = clf.Confidence
		}
		if p.intent == "" {
			p.intent = clf.Intent
		}
		if len(p.domains) == 0 {
			p.domains = clf.Domains
		}
		parts = append(parts, o.withTie(q, p, s.Alternatives, s.Tied))
	}
	return parts
}

// withTie adds the intents that are about as likely, of agents the caller may use.
func (o *oracle) withTie(q *asked, p askedPart, next []contract.IntentScore, tied bool) askedPart {
	if !tied {
		return p
	}
	likeliest := p.confidence
	for _, other := range next {
		usable := slices.ContainsFunc(o.registry.Agents, func(a *contract.RegistryEntry) bool {
			return slices.Contains(a.Match.Intent, other.Intent) && entitledTo(q.caller, a.ID) && (q.req.AgentID == nil || *q.req.AgentID == a.ID)
		})
		if usable && likeliest-other.Confidence < o.registry.Routing.AmbiguityThreshold {
			p.tied, p.confidence = append(p.tied, other.Intent), p.confidence+other.Confidence
		}
	}
	return p
}

func entitledTo(c *contract.Caller, id string) bool {
	return c.AllScopes || c.AllAgents || slices.Contains(c.Scopes, "agent:"+id)
}

func sees(c *contract.Caller, id string) bool {
	return entitledTo(c, id) || slices.Contains(c.Scopes, "admin")
}

// score is in hundredths: +50, +30 a domain up to 60, −20.
func (o *oracle) score(a *contract.RegistryEntry, p askedPart, prompt string) int {
	score, matched := 0, 0
	lacks := func(intent string) bool { return !slices.Contains(a.Match.Intent, intent) }
	if p.intent != "unknown" && !lacks(p.intent) && !slices.ContainsFunc(p.tied, lacks) {
		score += 50
	}
	distinct := map[string]bool{}
	for _, d := range p.domains {
		if !distinct[d] && d != "unknown" && d != "*" && slices.Contains(a.Match.Domains, d) {
			matched++
		}
		distinct[d] = true
	}
	if matched < len(distinct) && slices.Contains(a.Match.Domains, "*") {
		matched++
	}
	score += min(30*matched, 60)
	if most := a.Constraints.MaxTokens; most > 0 && int(math.Ceil(float64(len(prompt))/4)) > most {
		score -= 20
	}
	return score
}

func (o *oracle) requirementsMet(a *contract.RegistryEntry, q *asked) bool {
	for _, scope := range a.Requires.Scopes {
		if !q.caller.AllScopes && !slices.Contains(q.caller.Scopes, scope) {
			return false
		}
	}
	if tenants := a.Requires.Tenants; len(tenants) > 0 && (q.caller.Tenant == "" || !slices.Contains(tenants, q.caller.Tenant)) {
		return false
	}
	for _, class := range a.Requires.DataClasses {
		if class != "card" || !o.card(q.req.Content.Prompt) {
			return false
		}
	}
	return true
}

// confident is the gate on the classification: what a model says counts from the
// threshold on, words from a half on.
func (o *oracle) confident(clf *contract.Classification, p askedPart) bool {
	least := min(o.registry.Routing.ConfidenceThreshold, 1)
	if clf.Source != contract.SourceLLM && clf.Source != contract.SourceCache {
		least = 0.5
	}
	return p.confidence >= least
}

// allowed are the agents the part may go to.
func (o *oracle) allowed(q *asked, p askedPart) map[string]bool {
	out := map[string]bool{}
	threshold := int(math.Round(o.registry.Routing.ConfidenceThreshold * 100))
	for _, a := range o.registry.Agents {
		named := q.req.AgentID == nil || *q.req.AgentID == a.ID
		if named && entitledTo(q.caller, a.ID) && o.requirementsMet(a, q) &&
			o.score(a, p, q.req.Content.Prompt) >= threshold && o.confident(&q.resp.Decision.Classification, p) {
			out[a.ID] = true
		}
	}
	return out
}

// violations lists what is wrong with an answer by rule 1: one sentence each.
func (o *oracle) violations(q *asked) (wrong []string) {
	d := q.resp.Decision
	parts := o.partsAsked(q)
	anywhere, byPart := map[string]bool{}, map[int]map[string]bool{}
	for _, p := range parts {
		byPart[p.subtask] = o.allowed(q, p)
		for id := range byPart[p.subtask] {
			anywhere[id] = true
		}
	}
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, id := range d.Chosen {
		if !anywhere[id] {
			fail("%s is chosen and may not be", id)
		}
	}
	for _, id := range d.Standby {
		if !anywhere[id] {
			fail("%s stands by and may not", id)
		}
	}
	if n := len(d.Chosen); n > o.registry.Routing.TopK || len(slices.Compact(slices.Sorted(slices.Values(d.Chosen)))) != n {
		fail("%q are chosen, want at most %d distinct agents", d.Chosen, o.registry.Routing.TopK)
	}
	if q.req.Options.DryRun && len(anywhere) > 0 && len(d.Chosen) == 0 && q.resp.Status != contract.StatusClarify {
		fail("nobody is chosen, want one of %v", anywhere)
	}
	if q.resp.Status == contract.StatusClarify && len(d.Chosen)+len(q.resp.Tasks) > 0 {
		fail("%q are chosen while the caller is asked", d.Chosen)
	}
	for i := range d.Candidates {
		wrong = append(wrong, o.wrongCandidate(&d.Candidates[i], q, parts, byPart)...)
	}
	return append(wrong, o.wrongTasks(q, anywhere)...)
}

func (o *oracle) wrongCandidate(c *contract.Candidate, q *asked, parts []askedPart, byPart map[int]map[string]bool) (wrong []string) {
	at := -1
	if c.Subtask != nil {
		at = *c.Subtask
	}
	i := slices.IndexFunc(parts, func(p askedPart) bool { return p.subtask == at })
	clf := &q.resp.Decision.Classification
	p := askedPart{subtask: -1, intent: clf.Intent, domains: clf.Domains, confidence: clf.Confidence} // the nearest of a request nobody serves
	if i >= 0 {
		p = parts[i]
	}
	agent := o.registry.Agent(c.AgentID)
	if agent == nil {
		return []string{c.AgentID + " is no agent"}
	}
	if got, want := int(math.Round(c.Score*100)), o.score(agent, p, q.req.Content.Prompt); got != want {
		wrong = append(wrong, fmt.Sprintf("%s scores %d for part %d, want %d", c.AgentID, got, at, want))
	}
	if (c.Eligible || c.Role != contract.RoleCandidate) && !o.allowed(q, p)[c.AgentID] {
		wrong = append(wrong, fmt.Sprintf("%s is %s, eligible %v, for part %d and may not be", c.AgentID, c.Role, c.Eligible, at))
	}
	if c.Role != contract.RoleCandidate && i >= 0 && !byPart[at][c.AgentID] {
		wrong = append(wrong, fmt.Sprintf("%s is %s for part %d", c.AgentID, c.Role, at))
	}
	return wrong
}

// wrongTasks looks at who was given work: one of those who may, and for a task
// that was handed on one of those who stood by.
func (o *oracle) wrongTasks(q *asked, allowed map[string]bool) (wrong []string) {
	planned := slices.Concat(q.resp.Decision.Chosen, q.resp.Decision.Standby)
	check := func(id string) {
		if !allowed[id] || !slices.Contains(planned, id) {
			wrong = append(wrong, id+" has a task and may not")
		}
	}
	for i := range q.resp.Tasks {
		check(q.resp.Tasks[i].AgentID)
		for _, f := range q.resp.Tasks[i].FailedOver {
			check(f.AgentID)
		}
	}
	for i := range q.resp.Data.Results {
		check(q.resp.Data.Results[i].AgentID)
	}
	if q.req.Options.DryRun && len(q.resp.Tasks) > 0 {
		wrong = append(wrong, "a dry run has tasks")
	}
	return wrong
}

// shownAgents are the ids the answer names as such.
func shownAgents(resp *contract.Response) []string {
	d := resp.Decision
	ids := slices.Concat(d.Chosen, d.Standby)
	for _, list := range [][]contract.Candidate{d.Candidates, d.Hidden} {
		for i := range list {
			ids = append(ids, list[i].AgentID)
		}
	}
	if d.TieBreak != nil {
		ids = append(ids, d.TieBreak.Winner, d.TieBreak.Over)
	}
	for i := range resp.Tasks {
		ids = append(ids, resp.Tasks[i].AgentID)
	}
	if u := resp.Data.Unsupported; u != nil {
		for i := range u.Nearest {
			ids = append(ids, u.Nearest[i].AgentID)
		}
	}
	return ids
}

// leaks are the agents the answer names and the caller may not see. A name counts
// wherever it stands in the answer, but where it is the caller's or the model's own
// word: what a model says is shown as what it said (said).
func (o *oracle) leaks(q *asked, answer, said string) (leaked []string) {
	for _, id := range shownAgents(q.resp) {
		if !sees(q.caller, id) {
			leaked = append(leaked, id+" as an agent")
		}
	}
	for _, a := range o.registry.Agents {
		if !sees(q.caller, a.ID) && strings.Contains(answer, a.ID) && !strings.Contains(said, a.ID) {
			leaked = append(leaked, a.ID+" in the text")
		}
	}
	return leaked
}
