package dispatch

import (
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

// AgentStatus is the status of an agent at one moment.
type AgentStatus struct {
	State contract.AgentState
	// Breaker is resilience.Closed if an active instance has a closed breaker, else
	// HalfOpen if one is half-open, else Open.
	Breaker   string
	OpenUntil time.Time        // the earliest of its instances; zero unless Breaker is Open
	InFlight  int              // tasks it executes
	Instances []InstanceStatus // of a registered agent, by name
}

// InstanceStatus is the status of an instance at one moment.
type InstanceStatus struct {
	Name        string
	Breaker     string    // resilience.Closed, Open or HalfOpen
	OpenUntil   time.Time // zero unless the breaker is open
	InFlight    int       // tasks it executes
	MaxInFlight int
}

// AgentStatus returns the status of the agent with the id. An unknown agent is
// idle with a closed breaker.
func (d *Dispatcher) AgentStatus(id string) AgentStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.active[id]
	if a == nil {
		row := d.agents.findRow(id)
		if row == nil {
			return AgentStatus{State: contract.AgentActive, Breaker: resilience.Closed}
		}
		a = &agentState{live: row.live, entry: row.entry}
	}
	status := AgentStatus{State: a.live.State(), InFlight: a.live.InFlight()}
	for _, s := range a.instances {
		if !s.counted {
			status.InFlight += s.inFlight
		}
	}
	var degraded bool
	if status.Breaker, status.OpenUntil, degraded = a.breakerState(); degraded && status.State == contract.AgentActive {
		status.State = contract.AgentDegraded
	}
	if a.removed {
		return status
	}
	for i := range a.entry.Instances {
		in := &a.entry.Instances[i]
		s := a.findState(in.Name)
		of := InstanceStatus{Name: in.Name, MaxInFlight: limitOrDefault(in.MaxInFlight)}
		of.Breaker, of.OpenUntil = s.breakerState()
		if s != nil {
			of.InFlight = s.inFlight
		}
		status.Instances = append(status.Instances, of)
	}
	return status
}

// OpenBreakers counts the agents whose active instances are all down: the circuit breaker of each
// has opened, and neither a task nor a health check has succeeded since.
func (d *Dispatcher) OpenBreakers() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, a := range d.active {
		if !a.removed && a.isDown() {
			n++
		}
	}
	return n
}

// isDown reports whether the agent has active instances, and all are down. The caller holds mu.
func (a *agentState) isDown() bool {
	var buf [1]contract.Instance
	list := listInstances(a.entry, &buf)
	down := false
	for i := range list {
		if !takesTasks(list[i].State) {
			continue
		}
		if s := a.findState(list[i].Name); s == nil || !s.isDown() {
			return false
		}
		down = true
	}
	return down
}

// breakerState returns the state of the circuit breakers of the active instances
// together, and whether some are not closed while others are. The caller holds mu.
func (a *agentState) breakerState() (state string, openUntil time.Time, degraded bool) {
	var buf [1]contract.Instance
	list := listInstances(a.entry, &buf)
	var closed, halfOpen, open bool
	for i := range list {
		if !takesTasks(list[i].State) {
			continue
		}
		switch state, until := a.findState(list[i].Name).breakerState(); state {
		case resilience.Closed:
			closed = true
		case resilience.HalfOpen:
			halfOpen = true
		default:
			if !open || until.Before(openUntil) {
				openUntil = until
			}
			open = true
		}
	}
	switch {
	case closed || !halfOpen && !open:
		return resilience.Closed, time.Time{}, closed && (halfOpen || open)
	case halfOpen:
		return resilience.HalfOpen, time.Time{}, false
	}
	return resilience.Open, openUntil, false
}
