package dispatch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// roster is the live state of every agent of one registry. It is not changed
// after Live has installed it; the states in it are shared with the roster
// before and after. A nil roster is one before the first registry.
type roster struct {
	byID []row
}

// row is an agent in a roster. A sorted list of them takes a third of the
// memory of a map, which matters with a million agents.
type row struct {
	id      string
	live    *matcher.LiveState
	ordinal int // in the slice Live was given
}

// find returns the state of the agent with the id, or nil.
func (r *roster) find(id string) *matcher.LiveState {
	if p := r.row(id); p != nil {
		return p.live
	}
	return nil
}

func (r *roster) row(id string) *row {
	if r == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(r.byID, id, func(p row, id string) int { return strings.Compare(p.id, id) })
	if !ok {
		return nil
	}
	return &r.byID[i]
}

// next returns the roster of the agents, with the states of those that were in
// r already, and the states by ordinal.
func (r *roster) next(agents []*contract.RegistryEntry) (*roster, matcher.Live) {
	live := make(matcher.Live, len(agents))
	n := &roster{byID: make([]row, len(agents))}
	for i, e := range agents {
		n.byID[i] = row{id: e.ID, ordinal: i}
	}
	byID := func(a, b row) int { return strings.Compare(a.id, b.id) }
	if !slices.IsSortedFunc(n.byID, byID) {
		slices.SortFunc(n.byID, byID)
	}
	var before []row
	if r != nil {
		before = r.byID
	}
	for i := range n.byID {
		p := &n.byID[i]
		for len(before) > 0 && cmp.Less(before[0].id, p.id) {
			before = before[1:]
		}
		if len(before) > 0 && before[0].id == p.id {
			p.live = before[0].live
			p.live.SetLimit(limit(agents[p.ordinal]))
		} else {
			p.live = newLiveState(agents[p.ordinal])
		}
		live[p.ordinal] = p.live
	}
	return n, live
}

// SetAgents makes the agents the registry in use and returns their live states, in
// the order of the slice. An agent that was there before keeps its state, but
// for one whose endpoint is another now: what failed was the old one. The state
// of an agent that is not in the slice goes when its last task ends, so Live is
// for a registry that is certain to be used.
func (d *Dispatcher) SetAgents(agents []*contract.RegistryEntry) matcher.Live {
	d.reload.Lock()
	defer d.reload.Unlock()
	// With a million agents this takes a while: tasks are sent meanwhile.
	d.mu.Lock()
	current := d.roster
	d.mu.Unlock()
	next, live := current.next(agents)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.roster = next
	for _, a := range d.active {
		p := next.row(a.id)
		a.gone = p == nil
		if a.gone {
			d.forgetIfIdle(a)
			continue
		}
		if p.live != a.live { // it was gone, has come back, and is still working
			a.live.SetLimit(limit(agents[p.ordinal]))
			p.live, live[p.ordinal] = a.live, a.live
		}
		if a.breaker != nil && a.endpoint != agents[p.ordinal].Endpoint {
			a.breaker = nil
			a.publish()
			d.forgetIfIdle(a)
		}
	}
	return live
}

func newLiveState(entry *contract.RegistryEntry) *matcher.LiveState {
	s := &matcher.LiveState{}
	s.SetLimit(limit(entry))
	return s
}

func limit(entry *contract.RegistryEntry) int {
	if entry.MaxInFlight > 0 {
		return entry.MaxInFlight
	}
	return contract.DefaultMaxInFlight
}
