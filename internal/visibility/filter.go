package visibility

import (
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Texts that replace a text about agents that the caller may not see.
const (
	hiddenTitle  = "part"
	hiddenReason = "the reasons refer to agents that you may not use"
)

// accessLevel is how much of a record the caller may see.
type accessLevel int

const (
	accessAll         accessLevel = iota // everything
	accessEveryAgent                     // everything except the list of agents that its owner may not use
	accessNamedAgents                    // the agents that its scopes name, and their labels
)

// Filter removes from the records of one request what one caller may not see.
// It is immutable and safe for concurrent use.
type Filter struct {
	caller  *contract.Caller
	access  accessLevel
	own     bool   // the caller owns the request, so texts were written for it
	agents  Agents // visible ones; only set for accessNamedAgents
	routing capabilities.Routing
	empty   bool // the registry has no agents
}

// NewFilter returns the filter for what the caller may see of a request of the
// owner.
func NewFilter(registry *capabilities.Catalogue, caller, owner *contract.Caller) *Filter {
	f := &Filter{caller: caller, own: owner.SamePrincipal(caller), access: accessNamedAgents, routing: registry.Routing, empty: len(registry.Agents) == 0}
	switch {
	case caller.SeesAll(), caller.AllAgents && f.own:
		f.access = accessAll
	case caller.AllAgents:
		f.access = accessEveryAgent
	default:
		f.agents = Visible(registry, caller)
	}
	return f
}

// Response returns what the caller may see of the response. A nil response
// remains nil.
func (f *Filter) Response(resp *contract.Response) *contract.Response {
	if resp == nil || f.access == accessAll && !f.hidesErrors(resp.Tasks) {
		return resp
	}
	filtered := *resp
	filtered.Tasks = f.filterErrors(resp.Tasks)
	filtered.Decision = f.Decision(resp.Decision)
	if f.access != accessNamedAgents {
		return &filtered
	}
	titles := f.decisionTitles(resp.Decision)
	filtered.Tasks = filterTasks(filtered.Tasks, titles)
	filtered.Omitted = f.filterOmitted(resp.Omitted, resp.Decision, titles)
	f.filterData(&filtered.Data, titles)
	if filtered.Data.Classification != nil && filtered.Decision != nil {
		filtered.Data.Classification = &filtered.Decision.Classification // it is the same one
	}
	return &filtered
}

// FilterLogEntry removes from an entry of the decision log what the caller may
// not see. Values that the entry points to are not changed.
func (f *Filter) FilterLogEntry(e *contract.DecisionEntry) {
	e.Tasks = f.filterErrors(e.Tasks)
	if f.access == accessAll {
		return
	}
	complete := e.Decision
	e.Decision = f.Decision(complete)
	if f.access == accessEveryAgent {
		return
	}
	titles := f.decisionTitles(complete)
	e.Tasks = filterTasks(e.Tasks, titles)
	e.Omitted = f.filterOmitted(e.Omitted, complete, titles)
}

// Decision returns what the caller may see of the decision. A nil decision
// remains nil.
func (f *Filter) Decision(d *contract.Decision) *contract.Decision {
	if d == nil || f.access == accessAll {
		return d
	}
	if f.Conceals(d) {
		return f.concealedDecision(d)
	}
	filtered := *d
	filtered.Hidden = nil
	if f.access == accessEveryAgent {
		return &filtered
	}
	filtered.Classification = f.visiblePart(&d.Classification)
	filtered.Candidates = selectVisible(d.Candidates, func(c contract.Candidate) bool { return f.maySee(c.AgentID) })
	if len(filtered.Candidates) < len(d.Candidates) {
		filtered.CandidatesTotal = len(filtered.Candidates)
	}
	filtered.Standby = selectVisible(d.Standby, f.maySee)
	filtered.OnlyAgent = f.visibleID(d.OnlyAgent)
	if t := d.TieBreak; t != nil && (!f.maySee(t.Winner) || !f.maySee(t.Over)) {
		filtered.TieBreak = nil
	}
	return &filtered
}

func (f *Filter) maySee(agentID string) bool { return MaySeeAgent(f.caller, agentID) }

// visibleID returns the id of an agent, or "" if the caller may not see the agent.
func (f *Filter) visibleID(agentID string) string {
	if !f.maySee(agentID) {
		return ""
	}
	return agentID
}

func (f *Filter) filterOmitted(list []contract.Omitted, d *contract.Decision, titles subtaskTitles) []contract.Omitted {
	if f.Conceals(d) {
		return []contract.Omitted{}
	}
	filtered := slices.Clone(list)
	for i := range filtered {
		o := &filtered[i]
		o.Title, o.Intent, o.Domains = titles.replace(o.Title), f.maskIntent(o.Intent), f.maskDomains(o.Domains)
	}
	return filtered
}

func filterTasks(list []contract.TaskReport, titles subtaskTitles) []contract.TaskReport {
	filtered := slices.Clone(list)
	for i := range filtered {
		filtered[i].SubtaskTitle = titles.replace(filtered[i].SubtaskTitle)
	}
	return filtered
}

// selectVisible returns a new slice with the visible elements; it is never nil.
func selectVisible[T any](list []T, visible func(T) bool) []T {
	selected := make([]T, 0, len(list))
	for _, v := range list {
		if visible(v) {
			selected = append(selected, v)
		}
	}
	return selected
}
