package dispatch

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

// delivery is one Send in progress. One goroutine owns it.
//
// An admitted task counts towards the limit of the agent. While an instance has the task,
// the state of the instance keeps that count, and only as long as the instance is active.
type delivery struct {
	call     Call                    // as the target gets it: its Agent has the endpoint of the instance
	entry    *contract.RegistryEntry // as the caller knows it
	standbys int                     // other agents
	admitted bool                    // counts for the limit of the agent, and no instance has the task
	tried    []string                // instances that had the task before
	recorded bool                    // BeforeSend has succeeded

	instanceCall // of the instance that has the task
	target       Target
}

// instanceCall is the call of an instance: a task or a health check.
type instanceCall struct {
	agent    *agentState
	instance *instanceState // nil = none
	endpoint contract.Endpoint
	permit   resilience.Permit
	breaker  *resilience.Breaker // that gave the permit; nil = closed
}

// hasTried reports whether the instance had the task before.
func (dl *delivery) hasTried(name string) bool { return slices.Contains(dl.tried, name) }

// assignInstance gives the task to an instance that can take it, or returns the reason
// why none can.
func (d *Dispatcher) assignInstance(dl *delivery) (reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.assignLocked(dl)
}

// assignLocked is assignInstance for a caller that holds mu.
func (d *Dispatcher) assignLocked(dl *delivery) (reason string) {
	a := dl.agent
	if refusal := refusalOf(a.live.State()); refusal != "" { // it may have changed while the task waited
		return dl.entry.ID + " " + refusal
	}
	entry := d.entryInForce(dl.entry)
	if entry == nil {
		return dl.entry.ID + " has no active instance"
	}
	var buf [1]contract.Instance
	list := listInstances(entry, &buf)
	c := d.chooseInstance(dl, list, d.agents.nextTurn(entry))
	if c.index < 0 {
		return c.reason
	}
	in := &list[c.index]
	state := a.addState(in)
	d.admitLocked(&dl.instanceCall, state)
	state.inFlight++
	if dl.admitted = false; !state.counted {
		a.live.Release()
	}
	dl.instance, dl.target, dl.endpoint = state, c.target, in.Endpoint
	if row := d.agents.findRow(entry.ID); row != nil && len(list) > 1 {
		row.turn = uint32(c.index + 1) // the number of instances is small
	}
	dl.call.Standbys = dl.standbys
	if c.others { // it needs time to take over
		dl.call.Standbys++
	}
	if len(entry.Instances) > 0 {
		dl.call.Agent = atInstance(dl.entry, in)
	}
	return ""
}

// likelyInstance returns the entry of the agent with the endpoint of the instance that would
// get a task now, and its target, or nil if none can take one.
func (d *Dispatcher) likelyInstance(agent *contract.RegistryEntry) (*contract.RegistryEntry, Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry := d.entryInForce(agent)
	if entry == nil {
		return nil, nil
	}
	state := d.active[agent.ID]
	if state == nil {
		state = &agentState{}
	}
	var buf [1]contract.Instance
	list := listInstances(entry, &buf)
	c := d.chooseInstance(&delivery{entry: agent, instanceCall: instanceCall{agent: state}}, list, d.agents.nextTurn(entry))
	if c.index < 0 {
		return nil, nil
	}
	if len(entry.Instances) == 0 {
		return agent, c.target
	}
	return atInstance(agent, &list[c.index]), c.target
}

// admitLocked takes the permit of the circuit breaker of an instance that admits a task. The
// caller holds mu.
func (d *Dispatcher) admitLocked(call *instanceCall, state *instanceState) {
	call.permit, call.breaker = resilience.Permit{}, state.breaker
	if state.breaker == nil {
		return
	}
	call.permit, _ = state.breaker.Allow()
	if call.permit.IsTrial() {
		// Until the trial ends, or takes longer than OpenFor, other instances and
		// agents are preferred.
		state.trialInFlight, state.openUntil = true, d.breaker.Now().Add(d.breaker.OpenFor).UnixMilli()
		call.agent.publishOpenUntil()
	}
}

// assignNext takes the task from its instance, which has certainly not executed it,
// and gives it to another one. It reports whether there is one.
func (d *Dispatcher) assignNext(dl *delivery) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dl.tried = append(dl.tried, dl.instance.name)
	d.leaveInstance(dl)
	if !dl.admitted {
		if !dl.agent.live.Acquire() {
			return false
		}
		dl.admitted = true
	}
	return d.assignLocked(dl) == ""
}

// leaveInstance takes the task from its instance. The caller holds mu.
func (d *Dispatcher) leaveInstance(dl *delivery) {
	if dl.instance == nil {
		return
	}
	dl.instance.inFlight--
	dl.admitted = dl.instance.counted
	dl.agent.dropStateIfIdle(dl.instance)
	dl.instance = nil
}

// endDelivery ends what beginCall has begun.
func (d *Dispatcher) endDelivery(dl *delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaveInstance(dl)
	if dl.admitted {
		dl.agent.live.Release()
	}
	dl.agent.calls--
	d.dropIfIdle(dl.agent)
}

// entryInForce returns the entry with the instances that can get a task of the
// agent, nil if there is none any more. The entry of an agent of the file is that of
// the call. The caller holds mu.
func (d *Dispatcher) entryInForce(agent *contract.RegistryEntry) *contract.RegistryEntry {
	if len(agent.Instances) == 0 || d.agents == nil {
		return agent
	}
	row := d.agents.findRow(agent.ID)
	// The origin determines how the address is guarded.
	if row == nil || row.entry.Origin != agent.Origin || len(row.entry.Instances) == 0 {
		return nil
	}
	return row.entry
}

// atInstance returns the entry with the endpoint of the instance. The instance counts
// as idempotent only if its agent does, because the record names the agent.
func atInstance(entry *contract.RegistryEntry, in *contract.Instance) *contract.RegistryEntry {
	at := *entry
	at.Endpoint = in.Endpoint
	at.Endpoint.Idempotent = in.Endpoint.Idempotent && entry.Endpoint.Idempotent
	return &at
}
