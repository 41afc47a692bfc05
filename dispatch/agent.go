package dispatch

import (
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/matcher"
)

// agentState is the state of an agent that has tasks in flight or has failed.
// The dispatcher's mu guards all fields except live, which is atomic.
type agentState struct {
	live    *matcher.LiveState
	entry   *contract.RegistryEntry // in force; that of the first call if there is none in force
	calls   int                     // of Send in progress
	removed bool                    // from the registry
	// instances are those with tasks in flight or failures, by name.
	instances []*instanceState
	// An agent of the file needs no more memory than these, for its only instance.
	single instanceState
	one    [1]*instanceState
}

// beginCall returns the state of the agent for one call, which ends with
// endDelivery.
func (d *Dispatcher) beginCall(entry *contract.RegistryEntry) *agentState {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.addActive(entry)
	a.calls++
	return a
}

// addActive returns the state of the agent, which is new if there was none. The caller
// holds mu.
func (d *Dispatcher) addActive(entry *contract.RegistryEntry) *agentState {
	a := d.active[entry.ID]
	if a == nil {
		a = &agentState{}
		a.instances = a.one[:0]
		if row := d.agents.findRow(entry.ID); row != nil {
			a.live, a.entry = row.live, row.entry
		} else {
			// The request began before a reload removed the agent. Without any
			// registry, the state of every agent is kept.
			a.live, a.entry = newLiveState(entry), entry
			a.removed = d.agents != nil
		}
		d.active[entry.ID] = a
	}
	return a
}

// dropIfIdle drops a state that contains no information. The caller holds mu.
func (d *Dispatcher) dropIfIdle(a *agentState) {
	if a.calls == 0 && (a.removed || len(a.instances) == 0) {
		delete(d.active, a.entry.ID)
	}
}

// setEntry makes the entry the one in force. The tasks of an instance that is not
// active any more continue, and do not count for the limit of the agent, which is that
// of its active instances. It returns the circuit breakers that it has closed. The caller holds
// mu.
func (a *agentState) setEntry(entry *contract.RegistryEntry) (closed []closedBreaker) {
	a.entry = entry
	a.instances = slices.DeleteFunc(a.instances, func(s *instanceState) bool {
		in, listed := findInstance(entry, s.name)
		s.listed = listed
		switch {
		case !listed:
			closed = append(closed, a.replaceBreaker(s, removedFromRegistry)...)
		case !s.endpoint.Equal(&in.Endpoint):
			s.endpoint = in.Endpoint
			closed = append(closed, a.replaceBreaker(s, "its endpoint has changed")...)
		}
		s.awaitsHealthCheck = s.awaitsHealthCheck && entry.Health.IntervalS > 0
		switch active := listed && takesTasks(in.State); {
		case active && !s.counted:
			a.live.AddInFlight(s.inFlight)
			s.counted = true
		case !active && s.counted:
			a.live.AddInFlight(-s.inFlight)
			s.counted = false
		}
		return s.isIdle()
	})
	a.publishOpenUntil()
	return closed
}

// removedFromRegistry is why the circuit breaker of an instance without a row is closed.
const removedFromRegistry = "it was removed"

// closedBreaker is a circuit breaker that was not closed before a change of the registry.
type closedBreaker struct{ agent, instance, because string }

// replaceBreaker closes the circuit breaker of an instance, and returns it if it was not closed.
// The caller holds mu.
func (a *agentState) replaceBreaker(s *instanceState, because string) (closed []closedBreaker) {
	if state, _ := s.breakerState(); state != resilience.Closed {
		closed = []closedBreaker{{a.entry.ID, s.name, because}}
	}
	s.closeBreaker()
	return closed
}

// findState returns the state of the instance, or nil. The caller holds mu.
func (a *agentState) findState(name string) *instanceState {
	if i, ok := a.searchState(name); ok {
		return a.instances[i]
	}
	return nil
}

func (a *agentState) searchState(name string) (int, bool) {
	return slices.BinarySearchFunc(a.instances, name, func(s *instanceState, name string) int { return strings.Compare(s.name, name) })
}

// addState returns the state of the instance, which is new if there was none. The
// caller holds mu.
func (a *agentState) addState(in *contract.Instance) *instanceState {
	i, ok := a.searchState(in.Name)
	if ok {
		return a.instances[i]
	}
	s := &a.single // not in use, because no other state has its name
	if in.Name != "" {
		s = &instanceState{}
	}
	*s = instanceState{name: in.Name, endpoint: in.Endpoint}
	if current, ok := findInstance(a.entry, in.Name); ok {
		s.listed, s.counted, s.endpoint = true, takesTasks(current.State), current.Endpoint
	}
	a.instances = slices.Insert(a.instances, i, s)
	return s
}

// dropStateIfIdle drops the state of an instance that contains no information. The
// caller holds mu.
func (a *agentState) dropStateIfIdle(s *instanceState) {
	if !s.isIdle() {
		return
	}
	if i, ok := a.searchState(s.name); ok {
		a.instances = slices.Delete(a.instances, i, i+1)
	}
}

// publishOpenUntil makes the circuit breakers visible to the matcher: the agent can
// take a task as soon as one of its active instances can. The caller holds mu.
func (a *agentState) publishOpenUntil() {
	var buf [1]contract.Instance
	earliest, found := int64(0), false
	list := listInstances(a.entry, &buf)
	for i := range list {
		in := &list[i]
		if !takesTasks(in.State) {
			continue
		}
		until := int64(0)
		if s := a.findState(in.Name); s != nil {
			until = s.openUntil
		}
		if !found || until < earliest {
			earliest, found = until, true
		}
	}
	a.live.SetOpenUntil(earliest)
}

// listInstances returns the instances of the entry. An agent of the file has one
// without a name, which is stored in buf.
func listInstances(entry *contract.RegistryEntry, buf *[1]contract.Instance) []contract.Instance {
	if len(entry.Instances) > 0 {
		return entry.Instances
	}
	buf[0] = contract.Instance{Endpoint: entry.Endpoint, MaxInFlight: entry.MaxInFlight}
	return buf[:]
}

// findInstance returns the instance of the entry with the name.
func findInstance(entry *contract.RegistryEntry, name string) (in contract.Instance, ok bool) {
	var buf [1]contract.Instance
	list := listInstances(entry, &buf)
	for i := range list {
		if list[i].Name == name {
			return list[i], true
		}
	}
	return contract.Instance{}, false
}
