package router

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// data takes out of the payload of an answer what the caller may not see. What
// agents said stays: who may see the answer may see their results.
func (s *sight) data(d *contract.ResponseData, titles map[string]string) {
	d.Results = slices.Clone(d.Results)
	for i := range d.Results {
		d.Results[i].SubtaskTitle = titled(titles, d.Results[i].SubtaskTitle)
	}
	if titles != nil && len(d.Results) > 0 {
		d.Answer = contract.AnswerText(d.Results) // its sections have titles
	}
	d.Options = s.options(d.Options)
	d.Proposal = s.proposal(d.Proposal)
	if d.Unsupported != nil {
		var whole bool
		d.Unsupported, whole = s.unsupported(d.Unsupported)
		if d.Degraded && !whole {
			d.Answer = unsaid // else it would list what was taken out
		}
	}
}

// options are the readings the caller may choose from, in words it may know.
func (s *sight) options(list []contract.ClarificationOption) []contract.ClarificationOption {
	var shown []contract.ClarificationOption
	for _, o := range list {
		if s.intent(o.Intent) != o.Intent {
			continue
		}
		o.Domains = s.domains(o.Domains)
		o.Label = contract.OptionLabel(o.Intent, o.Domains)
		shown = append(shown, o)
	}
	return shown
}

// proposal is policy C's word. Its texts were made for one caller.
func (s *sight) proposal(p *contract.Proposal) *contract.Proposal {
	if p == nil || s.own {
		return p
	}
	shown := *p
	shown.Detail, shown.SuggestedYAML = unsaid, ""
	shown.Requirements, shown.Risks = []string{}, []string{}
	return &shown
}

// unsupported is policy B's word, and whether nothing was taken out of it. Its one
// sentence was made for one caller, of what that caller could see then.
func (s *sight) unsupported(u *contract.Unsupported) (shown *contract.Unsupported, whole bool) {
	u2 := *u
	u2.Nearest = kept(u.Nearest, func(n contract.NearestMiss) bool { return s.caller.MaySee(n.AgentID) })
	u2.AcceptedIntents = kept(u.AcceptedIntents, func(label string) bool { return s.intent(label) == label })
	u2.AcceptedDomains = kept(u.AcceptedDomains, func(label string) bool { return slices.Equal(s.domains([]string{label}), []string{label}) })
	u2.Examples = kept(u.Examples, s.declares)
	whole = s.own && len(u2.Nearest) == len(u.Nearest) &&
		len(u2.AcceptedIntents) == len(u.AcceptedIntents) && len(u2.AcceptedDomains) == len(u.AcceptedDomains)
	if !whole {
		u2.Detail = unsaid
	}
	return &u2, whole
}

// declares reports whether an agent the caller may see has the example.
func (s *sight) declares(example string) bool {
	return slices.ContainsFunc(s.agents, func(a *contract.RegistryEntry) bool {
		for _, list := range a.Examples {
			if slices.Contains(list, example) {
				return true
			}
		}
		return false
	})
}

// watcher shows the events of one request, in their order.
type watcher struct {
	sight   *sight
	decided func() *contract.Decision // looks up a decision that was not among the events; nil = there is none
	titles  map[string]string
	known   bool // titles are those of the decision
}

// event is what is shown of an event, which others see as well.
func (w *watcher) event(ev *contract.Event) *contract.Event {
	s := w.sight
	if s == nil {
		return ev
	}
	shown := *ev
	if ev.Decision != nil {
		w.learn(ev.Decision)
		shown.Decision = s.decision(ev.Decision)
	}
	if ev.Task != nil && !s.every {
		if !w.known && w.decided != nil {
			w.learn(w.decided())
		}
		task := *ev.Task
		if w.known {
			task.SubtaskTitle = titled(w.titles, task.SubtaskTitle)
		} else {
			task.SubtaskTitle = ""
		}
		shown.Task = &task
	}
	shown.Response = s.response(ev.Response)
	return &shown
}

func (w *watcher) learn(d *contract.Decision) {
	if d != nil {
		w.titles, w.known = w.sight.titles(d), true
	}
}
