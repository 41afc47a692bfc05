package matcher_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/matcher"
)

func TestLiveStateLimit(t *testing.T) {
	var s matcher.LiveState
	if !s.Acquire() {
		t.Fatal("got no place without a limit, want one")
	}
	s.SetLimit(2)
	if !s.Acquire() || s.Acquire() {
		t.Errorf("got %d in flight, want exactly one more place up to the limit of 2", s.InFlight())
	}
	if got := s.InFlight(); got != 2 {
		t.Errorf("got %d in flight after a refusal, want 2", got)
	}
	s.Release()
	if !s.Acquire() {
		t.Error("got no place after a release, want one")
	}
}

func TestLiveStateIsSharedSafely(t *testing.T) {
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
				s.SetDisabled(i%2 == 0)
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

// A live list that is too short, or has gaps, is that of active agents.
func TestLiveGaps(t *testing.T) {
	x, q := build(reviewer("a"), reviewer("b"), reviewer("c")), reviewQuery(everyone)
	down := &matcher.LiveState{}
	down.SetDisabled(true)
	for _, c := range describe(x, &q, matcher.Live{nil, down}) {
		if want := c.AgentID != "b"; c.Eligible != want {
			t.Errorf("%s: got eligible %t, want %t", c.AgentID, c.Eligible, want)
		}
	}
}
