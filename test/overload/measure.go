package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// recoveredFactor is how much higher than before the 99th percentile may be after
// recovery. minGrowth is the growth of goodput below which the peak is reached.
const (
	recoveredFactor = 1.2
	minGrowth       = 1.03
	maxCallers      = 512
)

// result contains the measurements of one subject.
type result struct {
	callers  int     // of the closed loop at the peak
	peak     float64 // good answers per second
	half     distribution
	halfShed int

	counts         outcomeCounts // during the overload
	goodput        float64       // per second
	good, shed     distribution
	recovered      bool
	recoveredAfter time.Duration
}

func logProgress(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }

func clampDuration(d, least, most time.Duration) time.Duration { return min(max(d, least), most) }

// measure finds the peak of the subject, and offers it half of the peak, then several
// times the peak, then half of it again.
func (s *subject) measure(ctx context.Context, lasts time.Duration) (*result, error) {
	calmTime := clampDuration(lasts/6, 500*time.Millisecond, 10*time.Second)
	recovery := clampDuration(lasts/4, maxRecovery+2*time.Second, 15*time.Second)
	r := &result{}
	var err error
	if r.callers, r.peak, err = s.findPeak(ctx, lasts, calmTime); err != nil {
		return nil, err
	}
	logProgress("%s: half of the peak, %.0f/s for %s", s.name, r.peak/2, calmTime)
	calm, err := s.runOpenLoop(ctx, schedule{{r.peak / 2, calmTime}})
	if err != nil {
		return nil, err
	}
	r.half, r.halfShed = latencies(calm, outcomeGood), countOutcomes(calm)[outcomeShed]

	logProgress("%s: %d× the peak, %.0f/s for %s, then half of it for %s", s.name, overloadFactor, overloadFactor*r.peak, lasts, recovery)
	samples, err := s.runOpenLoop(ctx, schedule{{overloadFactor * r.peak, lasts}, {r.peak / 2, recovery}})
	if err != nil {
		return nil, err
	}
	over := samplesBetween(samples, 0, lasts)
	r.counts, r.goodput = countOutcomes(over), computeGoodput(over, lasts)
	r.good, r.shed = latencies(over, outcomeGood), latencies(over, outcomeShed)
	r.recoveredAfter, r.recovered = recoveryTime(samples, lasts, lasts+recovery, time.Duration(recoveredFactor*float64(r.half.p99)))
	return r, nil
}

// findPeak doubles the callers of a closed loop until goodput stops growing, then
// measures the best number of callers for longer.
func (s *subject) findPeak(ctx context.Context, lasts, calmTime time.Duration) (callers int, peak float64, err error) {
	step := clampDuration(lasts/30, 100*time.Millisecond, 2*time.Second)
	s.runClosedLoop(ctx, 2, step) // warm-up
	callers = 1
	for n, vain := 1, 0; n <= maxCallers && vain < 2 && ctx.Err() == nil; n *= 2 {
		got := computeGoodput(s.runClosedLoop(ctx, n, step), step)
		logProgress("%s: %d callers, %.0f good answers/s", s.name, n, got)
		if got < peak*minGrowth {
			vain++ // tolerate one slow moment of the machine
			continue
		}
		callers, peak, vain = n, got, 0
	}
	peak = computeGoodput(s.runClosedLoop(ctx, callers, calmTime), calmTime)
	if peak == 0 {
		return 0, 0, errors.Join(ctx.Err(), fmt.Errorf("%s gave no good answer", s.name))
	}
	return callers, peak, ctx.Err()
}
