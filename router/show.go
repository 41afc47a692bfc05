package router

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// What stands where words would speak of agents the caller may not use.
const (
	untitled = "part"
	unsaid   = "the reasons speak of agents that you may not use"
)

// sight is what a caller may see of what is on record: agents it may use, and of
// intents and domains those that one of these declares. Everything a caller is
// shown passes through it. The nil sight sees everything.
type sight struct {
	caller *contract.Caller
	own    bool                      // the words of the answer were made for this caller
	every  bool                      // it may use every agent: only what others may not use is not for it to know
	agents []*contract.RegistryEntry // it may see
	view   *View                     // nil before the first
}

// sightOf is the caller's sight of a request, its own or that of another principal.
func (r *Router) sightOf(caller *contract.Caller, own bool) *sight {
	if caller.AllAgents && own || caller.SeesAll() {
		return nil
	}
	s := &sight{caller: caller, own: own, every: caller.AllAgents}
	if s.every {
		return s
	}
	if s.view = r.view.Load(); s.view != nil {
		s.agents = named(s.view.Registry, caller)
	}
	return s
}

// named are the agents that the caller's scopes name: fewer than a registry has.
func named(registry *capabilities.Snapshot, caller *contract.Caller) (agents []*contract.RegistryEntry) {
	for _, scope := range caller.Scopes {
		_, id, _ := strings.Cut(scope, ":")
		if agent := registry.Agent(id); agent != nil && caller.MaySee(id) {
			agents = append(agents, agent)
		}
	}
	return agents
}

// response is the answer as the caller may see it; resp itself stays as it is.
func (s *sight) response(resp *contract.Response) *contract.Response {
	if s == nil || resp == nil {
		return resp
	}
	shown := *resp
	shown.Decision = s.decision(resp.Decision)
	if s.every {
		return &shown
	}
	titles := s.titles(resp.Decision)
	shown.Tasks = s.tasks(resp.Tasks, titles)
	shown.Omitted = s.omitted(resp.Omitted, titles)
	if s.lostIn(resp.Decision) {
		shown.Omitted = []contract.Omitted{}
	}
	s.data(&shown.Data, titles)
	if shown.Data.Classification != nil && shown.Decision != nil {
		shown.Data.Classification = &shown.Decision.Classification // it is the same one
	}
	return &shown
}

// entry takes out of an entry of the decision log what the caller may not see.
func (s *sight) entry(e *contract.DecisionEntry) {
	if s == nil {
		return
	}
	titles := s.titles(e.Decision)
	if s.lostIn(e.Decision) {
		e.Omitted = []contract.Omitted{}
	}
	e.Decision = s.decision(e.Decision)
	if s.every {
		return
	}
	e.Tasks = s.tasks(e.Tasks, titles)
	e.Omitted = s.omitted(e.Omitted, titles)
}

func (s *sight) decision(d *contract.Decision) *contract.Decision {
	if d == nil {
		return nil
	}
	if s.lostIn(d) {
		return s.forgottenIn(d)
	}
	shown := *d
	shown.Hidden = nil
	if s.every {
		return &shown
	}
	shown.Classification = s.partly(&d.Classification)
	shown.Candidates = s.candidates(d.Candidates)
	if len(shown.Candidates) < len(d.Candidates) {
		shown.CandidatesTotal = len(shown.Candidates)
	}
	shown.Standby = kept(d.Standby, s.caller.MaySee)
	if t := d.TieBreak; t != nil && (!s.caller.MaySee(t.Winner) || !s.caller.MaySee(t.Over)) {
		shown.TieBreak = nil
	}
	return &shown
}

func (s *sight) candidates(list []contract.Candidate) []contract.Candidate {
	return kept(list, func(c contract.Candidate) bool { return s.caller.MaySee(c.AgentID) })
}

// classification hides the labels that only agents of others declare, and what a
// model said itself: it was shown all labels, and may repeat any.
func (s *sight) classification(c *contract.Classification) contract.Classification {
	if s.lost(c) {
		return s.forgotten(c)
	}
	return s.partly(c)
}

// partly is a classification of which something is left to be seen.
func (s *sight) partly(c *contract.Classification) contract.Classification {
	shown, titles := *c, s.titlesOf(c)
	shown.Intent, shown.Domains = s.intent(c.Intent), s.domains(c.Domains)
	shown.Subtasks = slices.Clone(c.Subtasks)
	for i := range shown.Subtasks {
		sub := &shown.Subtasks[i]
		sub.Title = titled(titles, sub.Title)
		sub.Intent, sub.Domains = s.intent(sub.Intent), s.domains(sub.Domains)
		if titles != nil {
			sub.Reason = ""
		}
	}
	shown.ModelUse = silent(c.ModelUse)
	if c.Cascade != nil {
		cascade := *c.Cascade
		cascade.Intent = s.intent(cascade.Intent)
		shown.Cascade = &cascade
	}
	shown.Alternatives = nil
	for _, next := range c.Alternatives {
		if s.intent(next.Intent) == next.Intent {
			shown.Alternatives = append(shown.Alternatives, next)
		}
	}
	return shown
}

// intent is the label as the caller may see it. "" stays: the parent's holds.
func (s *sight) intent(label string) string {
	if label == "" || slices.ContainsFunc(s.agents, func(a *contract.RegistryEntry) bool { return slices.Contains(a.Match.Intent, label) }) {
		return label
	}
	return contract.Unknown
}

// domains are those of the labels that the caller may see, unknown where that is
// none of them.
func (s *sight) domains(labels []string) []string {
	if len(labels) == 0 {
		return labels
	}
	shown := s.known(labels)
	if len(shown) == 0 {
		return []string{contract.Unknown}
	}
	return shown
}

// known are the domains that an agent the caller may see declares.
func (s *sight) known(labels []string) []string {
	return kept(labels, func(label string) bool {
		return label != contract.AnyDomain && slices.ContainsFunc(s.agents, func(a *contract.RegistryEntry) bool { return slices.Contains(a.Match.Domains, label) })
	})
}

// titles say what stands for the titles of the subtasks; nil when they stay. Those
// of a model are its own words, which may name anything: what it was told to read
// stands for them. Any other title is cut out of the caller's prompt.
func (s *sight) titles(d *contract.Decision) map[string]string {
	if d == nil {
		return nil
	}
	return s.titlesOf(&d.Classification)
}

func (s *sight) titlesOf(c *contract.Classification) map[string]string {
	own := func(sub contract.Subtask) bool { return sub.Title != sub.Intent } // code alone is titled by its intent
	byModel := c.Source == contract.SourceLLM || c.Source == contract.SourceCache
	if len(c.Subtasks) == 0 || !byModel && !slices.ContainsFunc(c.Subtasks, func(sub contract.Subtask) bool { return !own(sub) }) {
		return nil
	}
	titles := make(map[string]string, len(c.Subtasks))
	for i, sub := range c.Subtasks {
		intent, domains := sub.Intent, sub.Domains
		if intent == "" {
			intent = c.Intent
		}
		if len(domains) == 0 {
			domains = c.Domains
		}
		title := untitled + " " + strconv.Itoa(i+1)
		switch intent = s.intent(intent); {
		case !byModel && own(sub):
			title = sub.Title
		case intent != contract.Unknown:
			title = contract.OptionLabel(intent, s.domains(domains))
		}
		if _, known := titles[sub.Title]; !known {
			titles[sub.Title] = title
		}
	}
	return titles
}

// titled is the title that stands for one on record.
func titled(titles map[string]string, title string) string {
	if titles == nil || title == "" {
		return title
	}
	if shown, ok := titles[title]; ok {
		return shown
	}
	return untitled
}

func (s *sight) tasks(list []contract.TaskReport, titles map[string]string) []contract.TaskReport {
	shown := slices.Clone(list)
	for i := range shown {
		shown[i].SubtaskTitle = titled(titles, shown[i].SubtaskTitle)
	}
	return shown
}

func (s *sight) omitted(list []contract.Omitted, titles map[string]string) []contract.Omitted {
	shown := slices.Clone(list)
	for i := range shown {
		o := &shown[i]
		o.Title, o.Intent, o.Domains = titled(titles, o.Title), s.intent(o.Intent), s.domains(o.Domains)
	}
	return shown
}

// kept is a list of what may be seen; the list it is of stays as it is.
func kept[T any](list []T, visible func(T) bool) []T {
	shown := make([]T, 0, len(list))
	for _, v := range list {
		if visible(v) {
			shown = append(shown, v)
		}
	}
	return shown
}
