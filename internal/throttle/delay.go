package throttle

import (
	"math"
	"runtime/metrics"
	"slices"
	"time"
)

// SchedulingDelay is how long goroutines that were ready waited for a processor.
type SchedulingDelay struct {
	Waits uint64        // number of waits
	P99   time.Duration // 99th percentile
}

// minWaits is the number of waits from which their 99th percentile is meaningful.
const minWaits = 100

// exceeds reports whether the delay is above the limit, and is not that of a few
// goroutines.
func (d SchedulingDelay) exceeds(limit time.Duration) bool {
	return d.Waits >= minWaits && d.P99 > limit
}

// NewDelayMeter returns a function that returns the scheduling delay of this process since
// its previous call (runtime/metrics, /sched/latencies:seconds). It must not be called by
// two goroutines at a time. A call takes less than a microsecond.
func NewDelayMeter() func() SchedulingDelay {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	var previous []uint64
	return func() SchedulingDelay {
		metrics.Read(sample)
		h := sample[0].Value.Float64Histogram()
		counts := make([]uint64, len(h.Counts))
		for i, n := range h.Counts {
			counts[i] = n
			if previous != nil {
				counts[i] -= previous[i]
			}
		}
		previous = append(previous[:0], h.Counts...)
		return delayOf(counts, h.Buckets)
	}
}

// delayOf returns the delay of a histogram: bucket i has counts[i] waits of at least
// bounds[i] seconds.
func delayOf(counts []uint64, bounds []float64) (d SchedulingDelay) {
	for _, n := range counts {
		d.Waits += n
	}
	longer := uint64(0) // waits in this bucket and in those after it
	for i, n := range slices.Backward(counts) {
		if longer += n; longer > d.Waits/100 {
			if !math.IsInf(bounds[i], 0) {
				d.P99 = time.Duration(bounds[i] * float64(time.Second))
			}
			break
		}
	}
	return d
}
