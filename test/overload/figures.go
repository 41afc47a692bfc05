package main

import (
	"math"
	"slices"
	"time"
)

// spread is how a number of times lie.
type spread struct {
	n             int
	p50, p99, max time.Duration
}

// spreadOf sorts the times.
func spreadOf(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	slices.Sort(times)
	return spread{n: len(times), p50: percentile(times, 50), p99: percentile(times, 99), max: times[len(times)-1]}
}

// percentile is the least of the sorted times that so many percent do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// count is how many samples are of each kind.
type count [kinds]int

func countOf(samples []sample) (c count) {
	for _, s := range samples {
		c[s.kind]++
	}
	return c
}

// sent is how many were not left undone.
func (c count) sent() (n int) {
	for k, of := range c {
		if kind(k) != unsent {
			n += of
		}
	}
	return n
}

// between are the samples that were due in the time.
func between(samples []sample, from, to time.Duration) (those []sample) {
	for _, s := range samples {
		if s.due >= from && s.due < to {
			those = append(those, s)
		}
	}
	return those
}

// times collects one time of all samples of a kind.
func times(samples []sample, k kind, of func(sample) time.Duration) (all []time.Duration) {
	for _, s := range samples {
		if s.kind == k {
			all = append(all, of(s))
		}
	}
	return all
}

// lag is how late the requests were sent that were: that is the callers' doing.
func lag(samples []sample) spread {
	var all []time.Duration
	for _, s := range samples {
		if s.kind != unsent {
			all = append(all, s.sent-s.due)
		}
	}
	return spreadOf(all)
}

// goodput is how many good answers came a second, from one time to another, and in
// the worst whole second of them.
func goodput(samples []sample, from, to time.Duration) (perSecond, worst float64) {
	if to <= from {
		return 0, 0
	}
	seconds := make([]float64, int((to-from)/time.Second))
	n := 0
	for _, s := range samples {
		if s.kind != good || s.done < from || s.done >= to {
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

// step is how far apart the seconds begin that are looked at.
const step = 100 * time.Millisecond

// normalAfter is how long after a time the first whole second begins in which
// everything is good and the 99th percentile is at most as given.
func normalAfter(samples []sample, from, to, most time.Duration) (after time.Duration, ok bool) {
	for begin := from; begin+time.Second <= to; begin += step {
		those := between(samples, begin, begin+time.Second)
		if len(those) == 0 || countOf(those)[good] != len(those) {
			continue
		}
		if spreadOf(times(those, good, sample.late)).p99 <= most {
			return begin - from, true
		}
	}
	return 0, false
}

// ratio is a/b, and no number when there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

func clamp(d, least, most time.Duration) time.Duration { return min(max(d, least), most) }
