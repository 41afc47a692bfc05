package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, tt := range []struct {
		name    string
		of      []time.Duration
		percent int
		want    time.Duration
	}{
		{"the middle of a hundred", hundred, 50, 50},
		{"the 99th of a hundred", hundred, 99, 99},
		{"all of a hundred", hundred, 100, 100},
		{"the least of a hundred", hundred, 0, 1},
		{"the only one", hundred[:1], 99, 1},
		{"the middle of two is the first", hundred[:2], 50, 1},
		{"99 of two is the last", hundred[:2], 99, 2},
		{"the middle of three", hundred[:3], 50, 2},
	} {
		if got := percentile(tt.of, tt.percent); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A percentile is one of the values, and as many of them do not exceed it as it
// says, but not if it were the next smaller one.
func TestPercentileByCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 50), func(n int) time.Duration { return time.Duration(n) }), 1, 200).Draw(t, "values")
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		slices.Sort(values)
		got := percentile(values, percent)
		within, below := 0, 0
		for _, v := range values {
			if v <= got {
				within++
			}
			if v < got {
				below++
			}
		}
		if within*100 < percent*len(values) || below*100 >= percent*len(values) || within == below {
			t.Errorf("%d %% of %v: got %d", percent, values, got)
		}
	})
}

func TestSpreadOf(t *testing.T) {
	if got := spreadOf(nil); got != (spread{}) || got.String() != "none" {
		t.Errorf("of nothing: got %+v, in words %q", got, got)
	}
	got := spreadOf([]time.Duration{3 * ms, ms, 2 * ms})
	if want := (spread{n: 3, p50: 2 * ms, p99: 3 * ms, max: 3 * ms}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.String() != "2.0, 3.0, 3.0" {
		t.Errorf("in words: %s", got)
	}
}

// answers are a few samples of each kind.
func answers() []sample {
	return []sample{
		{due: 0, sent: ms, done: 11 * ms, kind: good},
		{due: 100 * ms, sent: 101 * ms, done: 102 * ms, kind: shed},
		{due: 200 * ms, kind: unsent},
		{due: 300 * ms, sent: 305 * ms, done: 310 * ms, kind: other},
		{due: 1100 * ms, sent: 1100 * ms, done: 1120 * ms, kind: good},
		{due: 1200 * ms, sent: 1200 * ms, done: 1210 * ms, kind: broken},
		{due: 1900 * ms, sent: 1900 * ms, done: 2001 * ms, kind: good},
	}
}

func TestCounting(t *testing.T) {
	c := countOf(answers())
	if want := (count{unsent: 1, good: 3, shed: 1, other: 1, broken: 1}); c != want {
		t.Errorf("got %v, want %v", c, want)
	}
	if got := c.sent(); got != 6 {
		t.Errorf("got %d sent, want 6", got)
	}
	if got := len(between(answers(), 100*ms, 1100*ms)); got != 3 {
		t.Errorf("got %d between, want 3: the end does not count", got)
	}
	if got := times(answers(), good, sample.late); !slices.Equal(got, []time.Duration{11 * ms, 20 * ms, 101 * ms}) {
		t.Errorf("late: got %v", got)
	}
	if got := times(answers(), shed, sample.served); !slices.Equal(got, []time.Duration{ms}) {
		t.Errorf("served: got %v", got)
	}
	if got := lag(answers()); got.n != 6 || got.max != 5*ms {
		t.Errorf("lag: got %+v, want 6 with at most 5ms", got)
	}
}

func TestGoodput(t *testing.T) {
	for _, tt := range []struct {
		name             string
		from, to         time.Duration
		perSecond, worst float64
	}{
		{"an answer counts when it comes", 0, 2 * time.Second, 1, 1},
		{"a second without any", 0, 4 * time.Second, 0.75, 0},
		{"less than a second", 0, 500 * ms, 2, 2},
		{"a part of a second is no worst one", 0, 1500 * ms, 2 / 1.5, 1},
		{"no time", time.Second, time.Second, 0, 0},
	} {
		perSecond, worst := goodput(answers(), tt.from, tt.to)
		if math.Abs(perSecond-tt.perSecond) > 1e-9 || worst != tt.worst {
			t.Errorf("%s: got %v, at worst %v, want %v, %v", tt.name, perSecond, worst, tt.perSecond, tt.worst)
		}
	}
}

func TestNormalAfter(t *testing.T) {
	// steady is an answer every 10 ms from 10 s to 15 s, changed by how.
	steady := func(how func(at time.Duration, s *sample)) (all []sample) {
		for at := 10 * time.Second; at < 15*time.Second; at += 10 * ms {
			s := sample{due: at, sent: at, done: at + 40*ms, kind: good}
			how(at-10*time.Second, &s)
			all = append(all, s)
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		how   func(at time.Duration, s *sample)
		after time.Duration
		ok    bool
	}{
		{"normal at once", func(time.Duration, *sample) {}, 0, true},
		{"shed for a while", func(at time.Duration, s *sample) {
			if at <= 1250*ms {
				s.kind = shed
			}
		}, 1300 * ms, true},
		{"late for a while", func(at time.Duration, s *sample) {
			if at < 2*time.Second {
				s.done += 20 * ms
			}
		}, 2 * time.Second, true},
		{"one in a hundred may be late", func(at time.Duration, s *sample) {
			if at%time.Second == 0 {
				s.done += time.Second
			}
		}, 0, true},
		{"two in a hundred may not", func(at time.Duration, s *sample) {
			if at%(500*ms) == 0 {
				s.done += time.Second
			}
		}, 0, false},
		{"one in a second is shed", func(at time.Duration, s *sample) {
			if at%(900*ms) == 0 {
				s.kind = shed
			}
		}, 0, false},
		{"what was not sent is not normal", func(_ time.Duration, s *sample) { s.kind = unsent }, 0, false},
	} {
		after, ok := normalAfter(steady(tt.how), 10*time.Second, 15*time.Second, 50*ms)
		if after != tt.after || ok != tt.ok {
			t.Errorf("%s: got %s, %v, want %s, %v", tt.name, after, ok, tt.after, tt.ok)
		}
	}
	if _, ok := normalAfter(nil, 0, 5*time.Second, time.Second); ok {
		t.Error("no answers are normal")
	}
}

func TestRatio(t *testing.T) {
	if got := ratio(3, 2); got != 1.5 {
		t.Errorf("got %v, want 1.5", got)
	}
	if got := ratio(3, 0); !math.IsNaN(got) {
		t.Errorf("of nothing: got %v, want no number", got)
	}
}
