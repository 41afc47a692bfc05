package main

import (
	"slices"
	"time"
)

// distribution is zero if there are no values.
type distribution struct{ p50, p99, max time.Duration }

// latencies returns the latencies of the samples with the outcome.
func latencies(samples []sample, k outcome) distribution {
	var all []time.Duration
	for _, s := range samples {
		if s.outcome == k {
			all = append(all, s.latency())
		}
	}
	if len(all) == 0 {
		return distribution{}
	}
	slices.Sort(all)
	return distribution{p50: percentile(all, 50), p99: percentile(all, 99), max: all[len(all)-1]}
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

// computeGoodput returns the good answers per second before a time.
func computeGoodput(samples []sample, to time.Duration) (perSecond float64) {
	n := 0
	for _, s := range samples {
		if s.outcome == outcomeGood && s.done < to {
			n++
		}
	}
	return float64(n) / to.Seconds()
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
		if latencies(those, outcomeGood).p99 <= most {
			return begin - from, true
		}
	}
	return 0, false
}
