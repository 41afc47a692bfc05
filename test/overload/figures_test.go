package main

import (
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

func TestPercentile_CountsValues(t *testing.T) {
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

func answers() []sample {
	return []sample{
		{due: 0, done: 11 * ms, outcome: outcomeGood},
		{due: 100 * ms, done: 102 * ms, outcome: outcomeShed},
		{due: 200 * ms, outcome: outcomeUnsent},
		{due: 300 * ms, done: 310 * ms, outcome: outcomeInvalid},
		{due: 1100 * ms, done: 1120 * ms, outcome: outcomeGood},
		{due: 1200 * ms, done: 1210 * ms, outcome: outcomeBroken},
		{due: 1900 * ms, done: 2001 * ms, outcome: outcomeGood},
	}
}

func TestCountOutcomes(t *testing.T) {
	c := countOutcomes(answers())
	if want := (outcomeCounts{outcomeUnsent: 1, outcomeGood: 3, outcomeShed: 1, outcomeInvalid: 1, outcomeBroken: 1}); c != want {
		t.Errorf("got %v, want %v", c, want)
	}
	if got := c.countSent(); got != 6 {
		t.Errorf("got %d sent, want 6", got)
	}
	if got := len(samplesBetween(answers(), 100*ms, 1100*ms)); got != 3 {
		t.Errorf("got %d between, want 3: the end does not count", got)
	}
	if got, want := latencies(answers(), outcomeGood), (distribution{p50: 20 * ms, p99: 101 * ms, max: 101 * ms}); got != want {
		t.Errorf("latencies: got %s, want %s", got, want)
	}
	if got := latencies(nil, outcomeGood); got != (distribution{}) {
		t.Errorf("latencies of no samples: got %s, want zero", got)
	}
}

func TestComputeGoodput(t *testing.T) {
	for to, want := range map[time.Duration]float64{2 * time.Second: 1, 4 * time.Second: 0.75, 500 * ms: 2} {
		if got := computeGoodput(answers(), to); got != want {
			t.Errorf("before %s: got %v, want %v", to, got, want)
		}
	}
}

func TestRecoveryTime(t *testing.T) {
	// steady is an answer every 10 ms from 10 s to 15 s, changed by how.
	steady := func(how func(at time.Duration, s *sample)) (all []sample) {
		for at := 10 * time.Second; at < 15*time.Second; at += 10 * ms {
			s := sample{due: at, done: at + 40*ms, outcome: outcomeGood}
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
				s.outcome = outcomeShed
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
				s.outcome = outcomeShed
			}
		}, 0, false},
		{"unsent requests are not normal", func(_ time.Duration, s *sample) { s.outcome = outcomeUnsent }, 0, false},
	} {
		after, ok := recoveryTime(steady(tt.how), 10*time.Second, 15*time.Second, 50*ms)
		if after != tt.after || ok != tt.ok {
			t.Errorf("%s: got %s, %v, want %s, %v", tt.name, after, ok, tt.after, tt.ok)
		}
	}
	if _, ok := recoveryTime(nil, 0, 5*time.Second, time.Second); ok {
		t.Error("no answers are normal")
	}
}
