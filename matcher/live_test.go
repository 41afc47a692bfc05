package matcher_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

func TestLiveState_Limit(t *testing.T) {
	var s matcher.LiveState
	if !s.Acquire() {
		t.Fatal("got no slot without a limit, want one")
	}
	s.SetLimit(2)
	if !s.Acquire() || s.Acquire() {
		t.Errorf("got %d in flight, want the limit of 2 and no further slot", s.InFlight())
	}
	if got := s.InFlight(); got != 2 {
		t.Errorf("got %d in flight after a rejection, want 2", got)
	}
	s.Release()
	if !s.Acquire() {
		t.Error("got no slot after a release, want one")
	}
}

// allStates are the agent states, the default one first.
var allStates = []contract.AgentState{
	"", contract.AgentActive, contract.AgentDegraded, contract.AgentDraining, contract.AgentExpired, contract.AgentDisabled,
}

// inState returns a function that sets the state.
func inState(state contract.AgentState) func(*matcher.LiveState) {
	return func(s *matcher.LiveState) { s.SetState(state) }
}

func TestLiveState_ReturnsStateSet(t *testing.T) {
	var s matcher.LiveState
	if got := s.State(); got != contract.AgentActive {
		t.Errorf("zero value: got state %q, want active", got)
	}
	for _, state := range allStates[1:] {
		s.SetState(state)
		if got := s.State(); got != state {
			t.Errorf("got state %q, want %q", got, state)
		}
	}
	s.SetState("")
	if got := s.State(); got != contract.AgentActive {
		t.Errorf("got state %q, want active", got)
	}
}

// The limit applies to Acquire only.
func TestLiveState_AddsInFlightBeyondLimit(t *testing.T) {
	var s matcher.LiveState
	s.SetLimit(2)
	s.AddInFlight(3)
	if s.InFlight() != 3 || s.Acquire() {
		t.Errorf("got %d in flight, want 3 and no further slot", s.InFlight())
	}
	if s.AddInFlight(-2); s.InFlight() != 1 || !s.Acquire() {
		t.Errorf("got %d in flight, want 1 and a free slot", s.InFlight())
	}
}

// The state is small, because a registry may have a million agents.
func TestLiveState_IsSmall(t *testing.T) {
	if got := unsafe.Sizeof(matcher.LiveState{}); got > 32 {
		t.Errorf("got a state of %d bytes, want at most 32", got)
	}
}

func TestLiveState_IsSafeForConcurrentUse(t *testing.T) {
	const limit, workers, rounds = 4, 16, 200
	var s matcher.LiveState
	s.SetLimit(limit)
	x, q := build(reviewer("a")), reviewQuery(everyone)
	live := matcher.Live{&s}

	var holding atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var res matcher.Result
			for i := range rounds {
				if s.Acquire() {
					if n := holding.Add(1); n > limit {
						t.Errorf("got %d holders, want at most %d", n, limit)
					}
					holding.Add(-1)
					s.Release()
				}
				s.SetOpenUntil(int64(i))
				s.SetState(allStates[i%len(allStates)])
				if x.Match(&q, live, &res); res.Total != 1 {
					t.Errorf("got %d hits, want 1", res.Total)
				}
			}
		})
	}
	wg.Wait()
	if got := s.InFlight(); got != 0 {
		t.Errorf("got %d in flight at the end, want 0", got)
	}
}

// Only tasks in flight count against the limit, and not other calls of Acquire that are
// about to be rejected: after the last Release, one of two calls succeeds.
func TestLiveState_RejectsOnlyIfLimitIsReached(t *testing.T) {
	for round := range 1000 {
		var s matcher.LiveState
		s.SetLimit(1)
		s.Acquire()

		var started, stop atomic.Bool
		var other bool // the other goroutine acquired
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() && !other {
				other = s.Acquire()
				started.Store(true)
			}
		})
		for !started.Load() {
			runtime.Gosched()
		}
		stop.Store(true) // so that the other goroutine calls Acquire at most once after Release
		s.Release()
		this := s.Acquire()
		wg.Wait()
		if this == other {
			t.Fatalf("round %d: got results %t and %t with one free slot, want one success", round, this, other)
		}
	}
}

// Missing entries of a live list mean active agents.
func TestMatch_MissingLiveStates(t *testing.T) {
	x, q := build(reviewer("a"), reviewer("b"), reviewer("c")), reviewQuery(everyone)
	down := &matcher.LiveState{}
	down.SetState(contract.AgentExpired)
	for _, c := range describe(x, &q, matcher.Live{nil, down}) {
		if want := c.AgentID != "b"; c.Eligible != want {
			t.Errorf("%s: got eligible %t, want %t", c.AgentID, c.Eligible, want)
		}
	}
}
