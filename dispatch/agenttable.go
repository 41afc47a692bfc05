package dispatch

import (
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// agentTable contains the entry and the live state of every agent of one registry.
// Except for live and turn, it does not change after SetAgents has installed it;
// consecutive tables share the states. A nil table is the one before the first
// registry.
type agentTable struct {
	rows    []agentRow                // by id
	checked []*contract.RegistryEntry // those that declare an interval of health checks
}

// agentRow is one agent. A sorted list of rows takes a third of the memory of a
// map, which matters with a million agents.
type agentRow struct {
	id      string
	entry   *contract.RegistryEntry
	live    *matcher.LiveState
	ordinal int32  // index in the argument of SetAgents
	turn    uint32 // the instance that goes first if several are equally busy; guarded by mu
}

// findRow returns the row of the agent with the id, or nil.
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

// nextTurn returns the index of the instance of the entry that wins a tie.
func (t *agentTable) nextTurn(entry *contract.RegistryEntry) int {
	if len(entry.Instances) > 1 {
		if row := t.findRow(entry.ID); row != nil {
			return int(row.turn)
		}
	}
	return 0
}

// nextTable returns the table of the agents, with the states of those that are in
// t already, and the states in the order of the agents.
func (t *agentTable) nextTable(agents []*contract.RegistryEntry) (*agentTable, matcher.Live) {
	live := make(matcher.Live, len(agents))
	next := &agentTable{rows: make([]agentRow, len(agents))}
	for i, e := range agents {
		next.rows[i] = agentRow{id: e.ID, entry: e, ordinal: int32(i)}
		if e.Health.IntervalS > 0 {
			next.checked = append(next.checked, e)
		}
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
			applyEntry(row.live, row.entry)
		} else {
			row.live = newLiveState(row.entry)
		}
		live[row.ordinal] = row.live
	}
	return next, live
}

// SetAgents installs the agents of a registry and returns their live states, in
// the order of the slice. An agent that was there before keeps its state, but the
// circuit breaker of an instance closes if its endpoint has changed. The state of a
// removed agent or instance is dropped when its last task ends, so SetAgents must be
// called only for a registry that will be used.
func (d *Dispatcher) SetAgents(agents []*contract.RegistryEntry) matcher.Live {
	d.reload.Lock()
	defer d.reload.Unlock()
	// Build the table without mu: with a million agents it takes a while, and tasks
	// are sent in the meantime.
	d.mu.Lock()
	current := d.agents
	d.mu.Unlock()
	next, live := current.nextTable(agents)
	for _, c := range d.installTable(next, live) {
		d.log.Info("circuit breaker closed", "agent", c.agent, "instance", c.instance, "because", c.because)
	}
	return live
}

// installTable puts the table in force, and the states of the agents that have one in live. It
// returns the circuit breakers that it has closed.
func (d *Dispatcher) installTable(next *agentTable, live matcher.Live) (closed []closedBreaker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents = next
	for id, a := range d.active {
		row := next.findRow(id)
		a.removed = row == nil
		if a.removed {
			for _, s := range a.instances {
				closed = append(closed, a.replaceBreaker(s, removedFromRegistry)...)
			}
			d.dropIfIdle(a)
			continue
		}
		if row.live != a.live { // it was removed and added again while it had tasks
			applyEntry(a.live, row.entry)
			row.live, live[row.ordinal] = a.live, a.live
		}
		closed = append(closed, a.setEntry(row.entry)...)
		d.dropIfIdle(a)
	}
	return closed
}

// SetCallable sets whether the tool that the agent is can be called. An agent whose tool
// cannot be called is not eligible. An agent of a later registry is callable until the next
// call.
func (d *Dispatcher) SetCallable(id string, callable bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if row := d.agents.findRow(id); row != nil {
		row.live.SetCallable(callable)
	}
}

func newLiveState(entry *contract.RegistryEntry) *matcher.LiveState {
	live := &matcher.LiveState{}
	applyEntry(live, entry)
	return live
}

// applyEntry sets the limit and the state of an agent to those of its entry.
func applyEntry(live *matcher.LiveState, entry *contract.RegistryEntry) {
	live.SetLimit(agentLimit(entry))
	live.SetState(stateOf(entry))
}

// agentLimit returns the limit of tasks in flight of an agent: that of its active
// instances together.
func agentLimit(entry *contract.RegistryEntry) int {
	if len(entry.Instances) == 0 {
		return limitOrDefault(entry.MaxInFlight)
	}
	limit := 0
	for i := range entry.Instances {
		if in := &entry.Instances[i]; takesTasks(in.State) {
			limit += limitOrDefault(in.MaxInFlight)
		}
	}
	return limit
}

func limitOrDefault(maxInFlight int) int {
	if maxInFlight > 0 {
		return maxInFlight
	}
	return contract.DefaultMaxInFlight
}

// stateOf returns the state of the entry. An agent without an active instance is
// never active.
func stateOf(entry *contract.RegistryEntry) contract.AgentState {
	if !takesTasks(entry.State) || len(entry.Instances) == 0 {
		return entry.State
	}
	state := contract.AgentExpired
	for i := range entry.Instances {
		switch in := &entry.Instances[i]; {
		case takesTasks(in.State):
			return entry.State
		case in.State == contract.AgentDraining:
			state = contract.AgentDraining
		}
	}
	return state
}

// RefusalOf returns why none of the instances of the agent gets tasks, "" if one does.
func RefusalOf(entry *contract.RegistryEntry) string { return refusalOf(stateOf(entry)) }

// takesTasks reports whether an agent or an instance in the state gets tasks.
func takesTasks(state contract.AgentState) bool { return refusalOf(state) == "" }

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
