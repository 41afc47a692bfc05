package matcher

import (
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
)

// LiveState is the state of an agent that changes between two loads of the registry:
// its circuit breaker, its tasks in flight and its agent state. The dispatcher
// updates it, and a match reads it without a lock. The zero value is an active agent
// without a limit.
type LiveState struct {
	openUntil atomic.Int64 // Unix milliseconds
	inFlight  atomic.Int64
	limit     atomic.Int64
	state     atomic.Uint32 // the bit of unavailability, 0 = active, or degraded

	uncallable atomic.Bool // the tool that the agent is cannot be called
}

// degraded is the stored state of a degraded agent. It is outside of the bits of
// unavailability, because the agent gets tasks.
const degraded = 1 << 8

// Live contains the states of the agents by ordinal of the index. An agent without a
// state is active.
type Live []*LiveState

// SetOpenUntil marks the agent's circuit breaker as open until the time, in Unix
// milliseconds; 0 closes it.
func (s *LiveState) SetOpenUntil(ms int64) { s.openUntil.Store(ms) }

// OpenUntil returns the time of SetOpenUntil.
func (s *LiveState) OpenUntil() int64 { return s.openUntil.Load() }

// SetLimit bounds the tasks in flight; 0 or less means no bound.
func (s *LiveState) SetLimit(n int) { s.limit.Store(int64(n)) }

// Limit returns the bound on the tasks in flight.
func (s *LiveState) Limit() int { return int(s.limit.Load()) }

// SetState sets the state of the agent, "" = active. An agent matches if it is active
// or degraded. An unknown state is handled like disabled.
func (s *LiveState) SetState(state contract.AgentState) {
	stored := uint32(unavailableDisabled)
	switch state {
	case "", contract.AgentActive:
		stored = 0
	case contract.AgentDegraded:
		stored = degraded
	case contract.AgentDraining:
		stored = uint32(unavailableDraining)
	case contract.AgentExpired:
		stored = uint32(unavailableExpired)
	}
	s.state.Store(stored)
}

// State returns the state of the agent.
func (s *LiveState) State() contract.AgentState {
	switch s.state.Load() {
	case 0:
		return contract.AgentActive
	case degraded:
		return contract.AgentDegraded
	case uint32(unavailableDraining):
		return contract.AgentDraining
	case uint32(unavailableExpired):
		return contract.AgentExpired
	}
	return contract.AgentDisabled
}

// SetCallable sets whether the tool that the agent is can be called. An agent that is no
// tool is callable.
func (s *LiveState) SetCallable(callable bool) { s.uncallable.Store(!callable) }

// Callable returns what SetCallable has set.
func (s *LiveState) Callable() bool { return !s.uncallable.Load() }

// Acquire counts one more task in flight, unless the limit is reached. If it returns
// true, the caller must call Release once.
func (s *LiveState) Acquire() bool {
	for {
		n := s.inFlight.Load()
		if limit := s.limit.Load(); limit > 0 && n >= limit {
			return false // and nothing was added meanwhile: another caller would be rejected for it
		}
		if s.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release counts one task in flight less.
func (s *LiveState) Release() { s.inFlight.Add(-1) }

// AddInFlight counts n more tasks in flight, or less, whatever the limit is.
func (s *LiveState) AddInFlight(n int) { s.inFlight.Add(int64(n)) }

// InFlight returns the tasks in flight.
func (s *LiveState) InFlight() int { return int(s.inFlight.Load()) }

// unavailability is the reason of a failed GateState. It is stored in the candidate,
// because the live state may change before the candidate is described.
type unavailability uint8

const (
	unavailableDisabled unavailability = 1 << iota
	unavailableDraining
	unavailableExpired
	unavailableBreaker
	unavailableBusy
	unavailableTool
)

// unavailability returns why the agent with the ordinal takes no task now; 0 if it
// does.
func (l Live) unavailability(ordinal int32, nowMS int64) unavailability {
	s := l.stateOf(ordinal)
	if s == nil {
		return 0
	}
	d := unavailability(s.state.Load()) // drops degraded, which takes tasks
	if s.openUntil.Load() > nowMS {
		d |= unavailableBreaker
	}
	if limit := s.limit.Load(); limit > 0 && s.inFlight.Load() >= limit {
		d |= unavailableBusy
	}
	if !s.Callable() {
		d |= unavailableTool
	}
	return d
}

// Disabled reports whether an administrator has disabled the agent.
func (c *Candidate) Disabled() bool { return c.unavailable&unavailableDisabled != 0 }

// stateOf returns the state of the agent with the ordinal, or nil.
func (l Live) stateOf(ordinal int32) *LiveState {
	if int(ordinal) < len(l) {
		return l[ordinal]
	}
	return nil
}
