package dispatch

import (
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/matcher"
)

// agent is what is known of an agent that is being called or has failed. All
// but live, which is atomic, is guarded by the dispatcher's mu.
type agent struct {
	id       string
	live     *matcher.LiveState
	calls    int                 // of Send, waiting ones included
	breaker  *resilience.Breaker // nil = no failure since the last success
	endpoint contract.Endpoint   // where it failed; set with breaker
	gone     bool                // the registry does not have it any more
}

// AgentStatus is how an agent is at this moment.
type AgentStatus struct {
	Breaker   string    // resilience.Closed, Open or HalfOpen
	OpenUntil time.Time // zero unless the breaker is open
	InFlight  int       // tasks it is working on
	Disabled  bool
}

// AgentStatus returns the status of the agent with the id. One that is not known is
// idle and well.
func (d *Dispatcher) AgentStatus(id string) AgentStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := AgentStatus{Breaker: resilience.Closed}
	live := d.roster.find(id)
	if a := d.active[id]; a != nil {
		live = a.live
		if a.breaker != nil {
			status.Breaker, status.OpenUntil = a.breaker.State(), a.breaker.OpenUntil()
		}
	}
	if live != nil {
		status.InFlight, status.Disabled = live.InFlight(), live.Disabled()
	}
	return status
}

// OpenBreakers counts the agents that get no tasks because their breaker is
// open.
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

// enter returns the state of the agent for one call, which ends with leave.
func (d *Dispatcher) enter(entry *contract.RegistryEntry) *agent {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.active[entry.ID]
	if a == nil {
		a = &agent{id: entry.ID, live: d.roster.find(entry.ID)}
		if a.live == nil {
			// A request that began before a reload took the agent away. Without
			// any registry every agent is one we keep.
			a.live = newLiveState(entry)
			a.gone = d.roster != nil
		}
		d.active[entry.ID] = a
	}
	a.calls++
	return a
}

func (d *Dispatcher) leave(a *agent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.calls--
	d.forgetIfIdle(a)
}

// forgetIfIdle drops what a fresh start would not miss. The caller holds mu.
func (d *Dispatcher) forgetIfIdle(a *agent) {
	if a.calls == 0 && (a.gone || a.breaker == nil) {
		delete(d.active, a.id)
	}
}

// admit asks the agent's breaker for one call.
func (d *Dispatcher) admit(a *agent) (resilience.Permit, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.breaker == nil {
		return resilience.Permit{}, true
	}
	permit, ok := a.breaker.Allow()
	if permit.IsProbe() {
		// One call finds out. Until it has, or has taken too long, the matcher
		// sends the others elsewhere.
		a.live.SetOpenUntil(d.breaker.Now().Add(d.breaker.OpenFor).UnixMilli())
	}
	return permit, ok
}

// judge gives the verdict on an admitted call.
func (d *Dispatcher) judge(a *agent, permit resilience.Permit, at contract.Endpoint, h Health) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.breaker == nil {
		if h != HealthBad || permit.IsProbe() {
			return // a trial of a breaker that a reload has dropped
		}
		a.breaker, a.endpoint = resilience.NewBreaker(d.breaker), at
	}
	switch h {
	case HealthGood:
		a.breaker.RecordSuccess(permit)
	case HealthBad:
		a.breaker.RecordFailure(permit)
	default:
		a.breaker.Release(permit)
	}
	if a.breaker.IsFresh() {
		a.breaker = nil
	}
	a.publish()
}

// publish tells the matcher. The caller holds mu.
func (a *agent) publish() {
	var until int64
	if a.breaker != nil {
		if t := a.breaker.OpenUntil(); !t.IsZero() {
			until = t.UnixMilli()
		}
	}
	a.live.SetOpenUntil(until)
}
