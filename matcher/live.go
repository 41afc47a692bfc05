package matcher

import "sync/atomic"

// LiveState is the state of an agent that changes between two loads of the registry:
// its circuit breaker, its tasks in flight and whether it is disabled. The dispatcher
// updates it, and a match reads it without a lock. The zero value is an active agent
// without a limit.
type LiveState struct {
	openUntil atomic.Int64 // Unix milliseconds
	inFlight  atomic.Int64
	limit     atomic.Int64
	disabled  atomic.Bool
}

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

// SetDisabled takes the agent out of matching, or back in.
func (s *LiveState) SetDisabled(disabled bool) { s.disabled.Store(disabled) }

// Disabled reports whether the agent is taken out of matching.
func (s *LiveState) Disabled() bool { return s.disabled.Load() }

// Acquire counts one more task in flight, unless the limit is reached. If it returns
// true, the caller must call Release once.
func (s *LiveState) Acquire() bool {
	n := s.inFlight.Add(1)
	if limit := s.limit.Load(); limit > 0 && n > limit {
		s.inFlight.Add(-1)
		return false
	}
	return true
}

// Release counts one task in flight less.
func (s *LiveState) Release() { s.inFlight.Add(-1) }

// InFlight returns the tasks in flight.
func (s *LiveState) InFlight() int { return int(s.inFlight.Load()) }

// unavailability is the reason of a failed GateState. It is stored in the candidate,
// because the live state may change before the candidate is described.
type unavailability uint8

const (
	unavailableDisabled unavailability = 1 << iota
	unavailableBreaker
	unavailableBusy
)

// unavailability returns why the agent with the ordinal takes no task now; 0 if it
// does.
func (l Live) unavailability(ordinal int32, nowMS int64) unavailability {
	s := l.stateOf(ordinal)
	if s == nil {
		return 0
	}
	var d unavailability
	if s.disabled.Load() {
		d |= unavailableDisabled
	}
	if s.openUntil.Load() > nowMS {
		d |= unavailableBreaker
	}
	if limit := s.limit.Load(); limit > 0 && s.inFlight.Load() >= limit {
		d |= unavailableBusy
	}
	return d
}

// stateOf returns the state of the agent with the ordinal, or nil.
func (l Live) stateOf(ordinal int32) *LiveState {
	if int(ordinal) < len(l) {
		return l[ordinal]
	}
	return nil
}
