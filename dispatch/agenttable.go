package dispatch

import (
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// agentTable contains the live state of every agent of one registry. It does not
// change after SetAgents has installed it; consecutive tables share the states.
// A nil table is the one before the first registry.
type agentTable struct {
	rows []agentRow // by id
}

// agentRow is one agent. A sorted list of rows takes a third of the memory of a
// map, which matters with a million agents.
type agentRow struct {
	id      string
	live    *matcher.LiveState
	ordinal int // index in the argument of SetAgents
}

// findState returns the state of the agent with the id, or nil.
func (t *agentTable) findState(id string) *matcher.LiveState {
	if row := t.findRow(id); row != nil {
		return row.live
	}
	return nil
}

func (t *agentTable) findRow(id string) *agentRow {
	if t == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(t.rows, id, func(row agentRow, id string) int { return strings.Compare(row.id, id) })
	if !ok {
		return nil
	}
	return &t.rows[i]
}

// nextTable returns the table of the agents, with the states of those that are in
// t already, and the states in the order of the agents.
func (t *agentTable) nextTable(agents []*contract.RegistryEntry) (*agentTable, matcher.Live) {
	live := make(matcher.Live, len(agents))
	next := &agentTable{rows: make([]agentRow, len(agents))}
	for i, e := range agents {
		next.rows[i] = agentRow{id: e.ID, ordinal: i}
	}
	byID := func(a, b agentRow) int { return strings.Compare(a.id, b.id) }
	if !slices.IsSortedFunc(next.rows, byID) {
		slices.SortFunc(next.rows, byID)
	}
	var before []agentRow
	if t != nil {
		before = t.rows
	}
	for i := range next.rows { // a merge of two sorted lists
		row := &next.rows[i]
		for len(before) > 0 && before[0].id < row.id {
			before = before[1:]
		}
		if len(before) > 0 && before[0].id == row.id {
			row.live = before[0].live
			row.live.SetLimit(maxInFlight(agents[row.ordinal]))
		} else {
			row.live = newLiveState(agents[row.ordinal])
		}
		live[row.ordinal] = row.live
	}
	return next, live
}

// SetAgents installs the agents of a registry and returns their live states, in
// the order of the slice. An agent that was there before keeps its state, but its
// circuit breaker closes if its endpoint has changed. The state of a removed agent
// is dropped when its last task ends, so SetAgents must be called only for a
// registry that will be used.
func (d *Dispatcher) SetAgents(agents []*contract.RegistryEntry) matcher.Live {
	d.reload.Lock()
	defer d.reload.Unlock()
	// Build the table without mu: with a million agents it takes a while, and tasks
	// are sent in the meantime.
	d.mu.Lock()
	current := d.agents
	d.mu.Unlock()
	next, live := current.nextTable(agents)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents = next
	for _, a := range d.active {
		row := next.findRow(a.id)
		a.removed = row == nil
		if a.removed {
			d.dropIfIdle(a)
			continue
		}
		if row.live != a.live { // it was removed and added again while it had tasks
			a.live.SetLimit(maxInFlight(agents[row.ordinal]))
			row.live, live[row.ordinal] = a.live, a.live
		}
		if a.breaker != nil && a.endpoint != agents[row.ordinal].Endpoint {
			a.breaker = nil
			a.publishOpenUntil()
			d.dropIfIdle(a)
		}
	}
	return live
}

func newLiveState(entry *contract.RegistryEntry) *matcher.LiveState {
	s := &matcher.LiveState{}
	s.SetLimit(maxInFlight(entry))
	return s
}

func maxInFlight(entry *contract.RegistryEntry) int {
	if entry.MaxInFlight > 0 {
		return entry.MaxInFlight
	}
	return contract.DefaultMaxInFlight
}

// refusalOf returns why an agent in the state gets no tasks, "" if it gets some.
func refusalOf(state contract.AgentState) string {
	switch state {
	case "", contract.AgentActive, contract.AgentDegraded:
		return ""
	case contract.AgentDraining:
		return "is draining and takes no new tasks"
	case contract.AgentExpired:
		return "has expired: no heartbeat came in time"
	}
	return "is disabled"
}
