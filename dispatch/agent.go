package dispatch

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/matcher"
)

// agentState is the state of an agent that has tasks in flight or has failed.
// The dispatcher's mu guards all fields except live, which is atomic.
type agentState struct {
	id       string
	live     *matcher.LiveState
	calls    int                 // of Send in progress
	breaker  *resilience.Breaker // nil = no failure since the last success
	endpoint contract.Endpoint   // that failed; set with breaker
	removed  bool                // from the registry
}

// beginCall returns the state of the agent for one call, which ends with endCall.
func (d *Dispatcher) beginCall(entry *contract.RegistryEntry) *agentState {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.active[entry.ID]
	if a == nil {
		a = &agentState{id: entry.ID, live: d.agents.findState(entry.ID)}
		if a.live == nil {
			// The request began before a reload removed the agent. Without any
			// registry, the state of every agent is kept.
			a.live = newLiveState(entry)
			a.removed = d.agents != nil
		}
		d.active[entry.ID] = a
	}
	a.calls++
	return a
}

func (d *Dispatcher) endCall(a *agentState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.calls--
	d.dropIfIdle(a)
}

// dropIfIdle drops a state that contains no information. The caller holds mu.
func (d *Dispatcher) dropIfIdle(a *agentState) {
	if a.calls == 0 && (a.removed || a.breaker == nil) {
		delete(d.active, a.id)
	}
}

// acquirePermit asks the agent's circuit breaker to admit one call.
func (d *Dispatcher) acquirePermit(a *agentState) (resilience.Permit, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.breaker == nil {
		return resilience.Permit{}, true
	}
	permit, ok := a.breaker.Allow()
	if permit.IsProbe() {
		// Until the probe ends, or takes longer than OpenFor, the matcher prefers
		// other agents.
		a.live.SetOpenUntil(d.breaker.Now().Add(d.breaker.OpenFor).UnixMilli())
	}
	return permit, ok
}

// recordHealth records the outcome of a call that acquirePermit admitted.
func (d *Dispatcher) recordHealth(a *agentState, permit resilience.Permit, endpoint contract.Endpoint, h Health) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.breaker == nil {
		if h != HealthBad || permit.IsProbe() {
			return // a probe of a breaker that a reload has dropped does not count
		}
		a.breaker, a.endpoint = resilience.NewBreaker(d.breaker), endpoint
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
	a.publishOpenUntil()
}

// publishOpenUntil makes the state of the breaker visible to the matcher. The
// caller holds mu.
func (a *agentState) publishOpenUntil() {
	var until int64
	if a.breaker != nil {
		if t := a.breaker.OpenUntil(); !t.IsZero() {
			until = t.UnixMilli()
		}
	}
	a.live.SetOpenUntil(until)
}
