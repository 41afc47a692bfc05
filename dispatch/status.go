package dispatch

import (
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

// AgentStatus is the status of an agent at one moment.
type AgentStatus struct {
	Breaker   string    // resilience.Closed, Open or HalfOpen
	OpenUntil time.Time // zero unless the breaker is open
	InFlight  int       // tasks it executes
	State     contract.AgentState
}

// AgentStatus returns the status of the agent with the id. An unknown agent is
// idle with a closed breaker.
func (d *Dispatcher) AgentStatus(id string) AgentStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := AgentStatus{Breaker: resilience.Closed, State: contract.AgentActive}
	live := d.agents.findState(id)
	if a := d.active[id]; a != nil {
		live = a.live
		if a.breaker != nil {
			status.Breaker, status.OpenUntil = a.breaker.State(), a.breaker.OpenUntil()
		}
	}
	if live != nil {
		status.InFlight, status.State = live.InFlight(), live.State()
	}
	return status
}

// OpenBreakers counts the agents that get no tasks because their circuit breaker
// is open.
func (d *Dispatcher) OpenBreakers() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, a := range d.active {
		if a.breaker != nil && a.breaker.State() == resilience.Open {
			n++
		}
	}
	return n
}
