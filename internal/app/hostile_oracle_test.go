package app

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// oracle computes which agents may be chosen, by one loop over the registry that follows the
// specification (003 §3) and shares only types with the matcher.
type oracle struct {
	registry *capabilities.Catalogue
	// card reports whether a text contains the card number of these tests, the data class that an
	// agent of theirs requires.
	card func(text string) bool
}

// observedRequest is a request with its response, as checked by the oracle.
type observedRequest struct {
	req    *contract.Request
	caller *contract.Caller
	resp   *contract.Response
}

// observedPart contains the fields by which one task is matched.
type observedPart struct {
	subtask    int // −1 = none
	intent     string
	domains    []string
	confidence float64
	tied       []string // further intents that an agent must declare
}

func (o *oracle) observedParts(q *observedRequest) []observedPart {
	clf := &q.resp.Decision.Classification
	if len(clf.Subtasks) == 0 {
		return []observedPart{o.withTie(q, observedPart{subtask: -1, intent: clf.Intent, domains: clf.Domains, confidence: clf.Confidence}, clf.Alternatives, clf.Tied)}
	}
	var parts []observedPart
	for i, s := range clf.Subtasks {
		p := observedPart{subtask: i, intent: s.Intent, domains: s.Domains, confidence: s.Confidence}
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

// withTie adds the intents that are about as likely, of agents that the caller may use.
func (o *oracle) withTie(q *observedRequest, p observedPart, next []contract.IntentScore, tied bool) observedPart {
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

func maySee(c *contract.Caller, id string) bool {
	return entitledTo(c, id) || slices.Contains(c.Scopes, "admin")
}

// score is in hundredths: +50 for the intent, +30 for each domain up to 60, −20 for a violation.
func (o *oracle) score(a *contract.RegistryEntry, p observedPart, prompt string) int {
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

func (o *oracle) requirementsMet(a *contract.RegistryEntry, q *observedRequest) bool {
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

// confident is the gate on the classification: the minimum confidence is the threshold for a model,
// and a half for the lexical classifier.
func (o *oracle) confident(clf *contract.Classification, p observedPart) bool {
	least := min(o.registry.Routing.ConfidenceThreshold, 1)
	if clf.Source != contract.SourceLLM && clf.Source != contract.SourceCache {
		least = 0.5
	}
	return p.confidence >= least
}

// allowed returns the agents that the part may be sent to.
func (o *oracle) allowed(q *observedRequest, p observedPart) map[string]bool {
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

// violations lists the violations of rule 1 in a response, one sentence each.
func (o *oracle) violations(q *observedRequest) (wrong []string) {
	d := q.resp.Decision
	parts := o.observedParts(q)
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
		fail("no agent is chosen, want one of %v", anywhere)
	}
	if q.resp.Status == contract.StatusClarify && len(d.Chosen)+len(q.resp.Tasks) > 0 {
		fail("%q are chosen while the caller is asked", d.Chosen)
	}
	for i := range d.Candidates {
		wrong = append(wrong, o.wrongCandidate(&d.Candidates[i], q, parts, byPart)...)
	}
	return append(wrong, o.wrongTasks(q, anywhere)...)
}

func (o *oracle) wrongCandidate(c *contract.Candidate, q *observedRequest, parts []observedPart, byPart map[int]map[string]bool) (wrong []string) {
	at := -1
	if c.Subtask != nil {
		at = *c.Subtask
	}
	i := slices.IndexFunc(parts, func(p observedPart) bool { return p.subtask == at })
	clf := &q.resp.Decision.Classification
	p := observedPart{subtask: -1, intent: clf.Intent, domains: clf.Domains, confidence: clf.Confidence} // the near misses of a request without agents
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

// wrongTasks checks that each task was sent to a permitted agent, and after a failover to a
// standby.
func (o *oracle) wrongTasks(q *observedRequest, allowed map[string]bool) (wrong []string) {
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

// shownAgents returns the ids that the response lists as agents.
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

// leaks returns the agents named in the response that the caller may not see. A name counts
// anywhere in the response, except in the text of the caller or of the model (quoted), which is
// returned as a quotation.
func (o *oracle) leaks(q *observedRequest, answer, quoted string) (leaked []string) {
	for _, id := range shownAgents(q.resp) {
		if !maySee(q.caller, id) {
			leaked = append(leaked, id+" as an agent")
		}
	}
	for _, a := range o.registry.Agents {
		if !maySee(q.caller, a.ID) && strings.Contains(answer, a.ID) && !strings.Contains(quoted, a.ID) {
			leaked = append(leaked, a.ID+" in the text")
		}
	}
	return leaked
}
