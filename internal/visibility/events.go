package visibility

import "github.com/caprouter/caprouter/contract"

// EventFilter filters the events of one request in their order. It is owned by
// one goroutine.
type EventFilter struct {
	filter   *Filter
	decision func() *contract.Decision
	titles   subtaskTitles
	decided  bool // titles are those of the decision
}

// Events returns a filter for the events of a request. The function looks up the
// request's decision if an event of a task arrives before the decision; it may
// return nil.
func (f *Filter) Events(decision func() *contract.Decision) *EventFilter {
	return &EventFilter{filter: f, decision: decision}
}

// Event returns what the caller may see of the event. The event itself is shared
// with other readers and is not changed.
func (e *EventFilter) Event(ev *contract.Event) *contract.Event {
	f := e.filter
	if f.access == accessAll && f.caller.SeesAll() {
		return ev
	}
	filtered := *ev
	if ev.Decision != nil {
		e.learnTitles(ev.Decision)
		filtered.Decision = f.Decision(ev.Decision)
	}
	if ev.Task != nil {
		filtered.Task = &f.filterErrors([]contract.TaskReport{*ev.Task})[0]
	}
	if ev.Task != nil && f.access == accessNamedAgents {
		if !e.decided {
			e.learnTitles(e.decision())
		}
		task := *filtered.Task
		if e.decided {
			task.SubtaskTitle = e.titles.replace(task.SubtaskTitle)
		} else {
			task.SubtaskTitle = ""
		}
		filtered.Task = &task
	}
	filtered.Response = f.Response(ev.Response)
	return &filtered
}

func (e *EventFilter) learnTitles(d *contract.Decision) {
	if d != nil {
		e.titles, e.decided = e.filter.decisionTitles(d), true
	}
}
