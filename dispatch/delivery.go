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
	agent    *agentState
	admitted bool     // counts for the limit of the agent, and no instance has the task
	tried    []string // instances that had the task before
	recorded bool     // BeforeSend has succeeded

	// Of the instance that has the task; nil = none.
	instance *instanceState
	target   Target
	endpoint contract.Endpoint
	permit   resilience.Permit
	breaker  *resilience.Breaker // that gave the permit; nil = closed
}

// hasTried reports whether the instance had the task before.
func (s *delivery) hasTried(name string) bool { return slices.Contains(s.tried, name) }

// assignInstance gives the task to an instance that can take it, or returns the reason
// why none can.
func (d *Dispatcher) assignInstance(s *delivery) (reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.assignLocked(s)
}

// assignLocked is assignInstance for a caller that holds mu.
func (d *Dispatcher) assignLocked(s *delivery) (reason string) {
	a := s.agent
	if refusal := refusalOf(a.live.State()); refusal != "" { // it may have changed while the task waited
		return s.entry.ID + " " + refusal
	}
	entry := d.entryInForce(s.entry)
	if entry == nil {
		return s.entry.ID + " has no active instance"
	}
	var buf [1]contract.Instance
	var row *agentRow
	turn := 0
	if len(entry.Instances) > 1 {
		if row = d.agents.findRow(entry.ID); row != nil {
			turn = int(row.turn)
		}
	}
	list := listInstances(entry, &buf)
	c := d.chooseInstance(s, list, turn)
	if c.index < 0 {
		return c.reason
	}
	in := &list[c.index]
	state := a.addState(in)
	d.admitLocked(s, state)
	state.inFlight++
	if s.admitted = false; !state.counted {
		a.live.Release()
	}
	s.instance, s.target, s.endpoint = state, c.target, in.Endpoint
	if row != nil {
		row.turn = uint32(c.index + 1) // the number of instances is small
	}
	s.call.Standbys = s.standbys
	if c.others { // it needs time to take over
		s.call.Standbys++
	}
	if len(entry.Instances) > 0 {
		s.call.Agent = atInstance(s.entry, in)
	}
	return ""
}

// admitLocked takes the permit of the circuit breaker of an instance that admits a task. The
// caller holds mu.
func (d *Dispatcher) admitLocked(s *delivery, state *instanceState) {
	s.permit, s.breaker = resilience.Permit{}, state.breaker
	if state.breaker == nil {
		return
	}
	s.permit, _ = state.breaker.Allow()
	if s.permit.IsTrial() {
		// Until the trial ends, or takes longer than OpenFor, other instances and
		// agents are preferred.
		state.trialInFlight, state.openUntil = true, d.breaker.Now().Add(d.breaker.OpenFor).UnixMilli()
		s.agent.publishOpenUntil()
	}
}

// assignNext takes the task from its instance, which has certainly not executed it,
// and gives it to another one. It reports whether there is one.
func (d *Dispatcher) assignNext(s *delivery) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.tried = append(s.tried, s.instance.name)
	d.leaveInstance(s)
	if !s.admitted {
		if !s.agent.live.Acquire() {
			return false
		}
		s.admitted = true
	}
	return d.assignLocked(s) == ""
}

// leaveInstance takes the task from its instance. The caller holds mu.
func (d *Dispatcher) leaveInstance(s *delivery) {
	if s.instance == nil {
		return
	}
	s.instance.inFlight--
	s.admitted = s.instance.counted
	s.agent.dropStateIfIdle(s.instance)
	s.instance = nil
}

// endDelivery ends what beginCall has begun.
func (d *Dispatcher) endDelivery(s *delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaveInstance(s)
	if s.admitted {
		s.agent.live.Release()
	}
	s.agent.calls--
	d.dropIfIdle(s.agent)
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
// as idempotent only if its agent does, because the agent is what is recorded.
func atInstance(entry *contract.RegistryEntry, in *contract.Instance) *contract.RegistryEntry {
	at := *entry
	at.Endpoint = in.Endpoint
	at.Endpoint.Idempotent = in.Endpoint.Idempotent && entry.Endpoint.Idempotent
	return &at
}
