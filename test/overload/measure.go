package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

// phases contains the duration of each phase.
type phases struct {
	loopStep time.Duration // per number of callers in the closed loop
	half     time.Duration // at the peak, and at half of it
	overload time.Duration
	recovery time.Duration
}

func planPhases(lasts time.Duration) phases {
	return phases{
		loopStep: clampDuration(lasts/30, 100*time.Millisecond, 2*time.Second),
		half:     clampDuration(lasts/6, 500*time.Millisecond, 10*time.Second),
		overload: lasts,
		recovery: clampDuration(lasts/4, 2*time.Second, 15*time.Second),
	}
}

// recoveredFactor is how much higher than before the 99th percentile may be after
// recovery. minGrowth is the growth of goodput below which the peak is reached.
const (
	recoveredFactor = 1.2
	minGrowth       = 1.03
	maxCallers      = 512
)

// result contains the measurements of one subject.
type result struct {
	name        string
	callers     int     // of the closed loop at the peak
	peak        float64 // good answers per second
	peakLatency distribution

	halfRate    float64
	halfLatency distribution
	halfShed    int

	offered, goodput, worstSecond             float64 // per second during the overload
	counts                                    outcomeCounts
	goodLatency, shedLatency, shedServiceTime distribution
	sendDelay                                 distribution

	recovered      bool
	recoveredAfter time.Duration
	finalPeak      float64 // measured again at the end, because the machine may have become slower

	peakCPU, overloadCPU string // number of CPUs by process
}

type measurer struct {
	progress    io.Writer
	connections int
}

func (m *measurer) logProgress(format string, values ...any) {
	fmt.Fprintf(m.progress, format+"\n", values...)
}

// measureSubject runs all phases.
func (m *measurer) measureSubject(ctx context.Context, s *subject, p phases, consumers []cpuConsumer) (*result, error) {
	r := &result{name: s.name}
	if err := m.findPeak(ctx, s, p, r, consumers); err != nil {
		return nil, err
	}
	m.logProgress("%s: half of the peak, %.0f/s for %s", s.name, r.peak/2, p.half)
	calm, err := s.runOpenLoop(ctx, schedule{{r.peak / 2, p.half}}, m.connections)
	if err != nil {
		return nil, err
	}
	r.halfRate = r.peak / 2
	r.halfLatency = newDistribution(collectTimes(calm, outcomeGood, sample.latency))
	r.halfShed = countOutcomes(calm)[outcomeShed]

	m.logProgress("%s: %d× the peak, %.0f/s for %s, then half of it for %s", s.name, overloadFactor, overloadFactor*r.peak, p.overload, p.recovery)
	sched := schedule{{overloadFactor * r.peak, p.overload}, {r.halfRate, p.recovery}}
	began := readCPU(consumers)
	group := run.New(ctx)
	group.Go("read the CPUs", func(ctx context.Context) error {
		process.Sleep(ctx, p.overload)
		r.overloadCPU = formatCPUUsage(consumers, began)
		return nil
	})
	samples, err := s.runOpenLoop(ctx, sched, m.connections)
	group.Stop(nil) // already done, unless an error occurred
	if err := errors.Join(err, group.Wait()); err != nil {
		return nil, err
	}
	r.summarizeOverload(samples, p)
	r.recoveredAfter, r.recovered = recoveryTime(samplesBetween(samples, p.overload, sched.totalDuration()), p.overload, sched.totalDuration(),
		time.Duration(recoveredFactor*float64(r.halfLatency.p99)))
	r.finalPeak, _ = computeGoodput(s.runClosedLoop(ctx, r.callers, p.half), 0, p.half)
	return r, ctx.Err()
}

func (r *result) summarizeOverload(samples []sample, p phases) {
	over := samplesBetween(samples, 0, p.overload)
	r.counts = countOutcomes(over)
	r.offered = float64(r.counts.countSent()) / p.overload.Seconds()
	r.goodput, r.worstSecond = computeGoodput(over, 0, p.overload)
	r.goodLatency = newDistribution(collectTimes(over, outcomeGood, sample.latency))
	r.shedLatency = newDistribution(collectTimes(over, outcomeShed, sample.latency))
	r.shedServiceTime = newDistribution(collectTimes(over, outcomeShed, sample.serviceTime))
	r.sendDelay = sendDelay(over)
}

// findPeak doubles the callers of a closed loop until goodput stops growing, then
// measures the best number of callers for longer.
func (m *measurer) findPeak(ctx context.Context, s *subject, p phases, r *result, consumers []cpuConsumer) error {
	s.runClosedLoop(ctx, 2, p.loopStep) // warm-up
	best, most := 1, 0.0
	for callers, vain := 1, 0; callers <= maxCallers && vain < 2; callers *= 2 {
		got, _ := computeGoodput(s.runClosedLoop(ctx, callers, p.loopStep), 0, p.loopStep)
		m.logProgress("%s: %d callers, %.0f good answers/s", s.name, callers, got)
		if err := ctx.Err(); err != nil {
			return err
		}
		if got < most*minGrowth {
			vain++ // tolerate one slow moment of the machine
			continue
		}
		best, most, vain = callers, got, 0
	}
	before := readCPU(consumers)
	samples := s.runClosedLoop(ctx, best, p.half)
	r.peakCPU = formatCPUUsage(consumers, before)
	r.callers = best
	r.peak, _ = computeGoodput(samples, 0, p.half)
	r.peakLatency = newDistribution(collectTimes(samples, outcomeGood, sample.latency))
	m.logProgress("%s: the peak is %.0f good answers/s", s.name, r.peak)
	if r.peak == 0 {
		return errors.Join(ctx.Err(), fmt.Errorf("%s gave no good answer", s.name))
	}
	return ctx.Err()
}
