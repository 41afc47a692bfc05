package main

import (
	"math"
	"slices"
	"time"
)

type distribution struct {
	n             int
	p50, p99, max time.Duration
}

// newDistribution sorts the durations.
func newDistribution(times []time.Duration) distribution {
	if len(times) == 0 {
		return distribution{}
	}
	slices.Sort(times)
	return distribution{n: len(times), p50: percentile(times, 50), p99: percentile(times, 99), max: times[len(times)-1]}
}

// percentile returns the smallest value that at least that percentage of the sorted
// values do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

type outcomeCounts [numOutcomes]int

func countOutcomes(samples []sample) (c outcomeCounts) {
	for _, s := range samples {
		c[s.outcome]++
	}
	return c
}

func (c outcomeCounts) countSent() (n int) {
	for k, of := range c {
		if outcome(k) != outcomeUnsent {
			n += of
		}
	}
	return n
}

// samplesBetween returns the samples that were due from one time to another.
func samplesBetween(samples []sample, from, to time.Duration) (those []sample) {
	for _, s := range samples {
		if s.due >= from && s.due < to {
			those = append(those, s)
		}
	}
	return those
}

// collectTimes returns one duration of each sample with the outcome.
func collectTimes(samples []sample, k outcome, of func(sample) time.Duration) (all []time.Duration) {
	for _, s := range samples {
		if s.outcome == k {
			all = append(all, of(s))
		}
	}
	return all
}

// sendDelay returns how late requests were sent, which the callers are responsible
// for.
func sendDelay(samples []sample) distribution {
	var all []time.Duration
	for _, s := range samples {
		if s.outcome != outcomeUnsent {
			all = append(all, s.sent-s.due)
		}
	}
	return newDistribution(all)
}

// computeGoodput returns the good answers per second from one time to another, and in
// the worst whole second.
func computeGoodput(samples []sample, from, to time.Duration) (perSecond, worst float64) {
	if to <= from {
		return 0, 0
	}
	seconds := make([]float64, int((to-from)/time.Second))
	n := 0
	for _, s := range samples {
		if s.outcome != outcomeGood || s.done < from || s.done >= to {
			continue
		}
		n++
		if at := int((s.done - from) / time.Second); at < len(seconds) {
			seconds[at]++
		}
	}
	perSecond = float64(n) / (to - from).Seconds()
	if len(seconds) == 0 {
		return perSecond, perSecond
	}
	return perSecond, slices.Min(seconds)
}

// windowStep is the distance between the windows that recoveryTime examines.
const windowStep = 100 * time.Millisecond

// recoveryTime returns when the first second begins, counted from a time, in which all
// answers are good and their 99th percentile is at most the limit.
func recoveryTime(samples []sample, from, to, most time.Duration) (after time.Duration, ok bool) {
	for begin := from; begin+time.Second <= to; begin += windowStep {
		those := samplesBetween(samples, begin, begin+time.Second)
		if len(those) == 0 || countOutcomes(those)[outcomeGood] != len(those) {
			continue
		}
		if newDistribution(collectTimes(those, outcomeGood, sample.latency)).p99 <= most {
			return begin - from, true
		}
	}
	return 0, false
}

func divideOrNaN(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

func clampDuration(d, least, most time.Duration) time.Duration { return min(max(d, least), most) }
