package main

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSchedule_ArrivalTimes(t *testing.T) {
	s := schedule{{100, 2 * time.Second}, {10, time.Second}}
	if got := s.countArrivals(); got != 210 {
		t.Errorf("got %d arrivals, want 210", got)
	}
	if got := s.maxRate(); got != 100 {
		t.Errorf("got maximum rate %v, want 100", got)
	}
	for _, tt := range []struct {
		i        int
		at, over time.Duration
	}{
		{0, 0, 2 * time.Second},
		{1, 10 * time.Millisecond, 2 * time.Second},
		{199, 1990 * time.Millisecond, 2 * time.Second},
		{200, 2 * time.Second, 3 * time.Second},
		{209, 2900 * time.Millisecond, 3 * time.Second},
	} {
		if at, over := s.arrivalTime(tt.i); at != tt.at || over != tt.over {
			t.Errorf("number %d: got %s, over at %s, want %s, %s", tt.i, at, over, tt.at, tt.over)
		}
	}
}

func TestSchedule_ArrivesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s schedule
		for range rapid.IntRange(0, 4).Draw(t, "stretches") {
			s = append(s, segment{
				rate:     rapid.Float64Range(0, 5000).Draw(t, "rate"),
				duration: time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond,
			})
		}
		var last time.Duration
		for i := range s.countArrivals() {
			at, over := s.arrivalTime(i)
			if at < last || at > over {
				t.Fatalf("number %d of %v is due at %s, over at %s; the one before was at %s", i, s, at, over, last)
			}
			last = at
		}
	})
}
