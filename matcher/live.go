package matcher

import "sync/atomic"

// LiveState is what changes about an agent between two registry loads. Whoever
// sends tasks keeps it up to date; a match reads it without a lock. The zero
// value is an active agent without a limit.
type LiveState struct {
	openUntil atomic.Int64 // Unix milliseconds
	inFlight  atomic.Int64
	limit     atomic.Int64
	disabled  atomic.Bool
}

// Live holds the states of an index's agents by ordinal. A missing or nil state
// is that of an active agent.
type Live []*LiveState

// SetOpenUntil says that the agent's circuit breaker is open until the time, in
// Unix milliseconds; 0 closes it.
func (s *LiveState) SetOpenUntil(ms int64) { s.openUntil.Store(ms) }

// OpenUntil returns what SetOpenUntil said.
func (s *LiveState) OpenUntil() int64 { return s.openUntil.Load() }

// SetLimit bounds the tasks in flight; 0 or less is no bound.
func (s *LiveState) SetLimit(n int) { s.limit.Store(int64(n)) }

// Limit returns the bound on the tasks in flight.
func (s *LiveState) Limit() int { return int(s.limit.Load()) }

// SetDisabled takes the agent out of matching, or back in.
func (s *LiveState) SetDisabled(disabled bool) { s.disabled.Store(disabled) }

// Disabled reports whether the agent is taken out of matching.
func (s *LiveState) Disabled() bool { return s.disabled.Load() }

// Acquire counts one more task in flight, unless the limit is reached. Each
// true must be followed by one Release.
func (s *LiveState) Acquire() bool {
	n := s.inFlight.Add(1)
	if limit := s.limit.Load(); limit > 0 && n > limit {
		s.inFlight.Add(-1)
		return false
	}
	return true
}

// Release ends what Acquire began.
func (s *LiveState) Release() { s.inFlight.Add(-1) }

// InFlight returns the tasks in flight.
func (s *LiveState) InFlight() int { return int(s.inFlight.Load()) }

// unavailability is what keeps an agent from being given work now. GateState has no room
// for it, and the state may have changed when the candidate is described.
type unavailability uint8

const (
	unavailableDisabled unavailability = 1 << iota
	unavailableBreaker
	unavailableBusy
)

// unavailability reads the state of the agent with the ordinal.
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
