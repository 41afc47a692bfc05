package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// plan is how long each phase lasts.
type plan struct {
	step     time.Duration // each number of callers in the closed loop
	calm     time.Duration // the peak, and half of it
	overload time.Duration
	recovery time.Duration
}

func planOf(lasts time.Duration) plan {
	return plan{
		step:     clamp(lasts/30, 100*time.Millisecond, 2*time.Second),
		calm:     clamp(lasts/6, 500*time.Millisecond, 10*time.Second),
		overload: lasts,
		recovery: clamp(lasts/4, 2*time.Second, 15*time.Second),
	}
}

// How far the normal may lie from what was before, and the peak from the step
// below it.
const (
	normalFactor = 1.2
	growth       = 1.03
	mostCallers  = 512
)

// result is what one subject did.
type result struct {
	name    string
	callers int     // in the closed loop at the peak
	peak    float64 // good answers a second
	atPeak  spread

	calmRate float64
	calm     spread // at half of the peak
	calmShed int

	offered, goodput, worst float64 // a second, in the overload
	counts                  count
	good, shedDue, shedSent spread
	lag                     spread

	recovered bool
	after     time.Duration
	peakAgain float64 // once more, when all is over: the machine may have changed

	usedPeak, usedOver string // CPUs
}

// measurer measures subjects, one after the other.
type measurer struct {
	progress    io.Writer
	connections int
}

func (m *measurer) say(format string, values ...any) {
	fmt.Fprintf(m.progress, format+"\n", values...)
}

// measure takes a subject through all phases.
func (m *measurer) measure(ctx context.Context, s *subject, p plan, consumers []consumer) (*result, error) {
	r := &result{name: s.name}
	if err := m.findPeak(ctx, s, p, r, consumers); err != nil {
		return nil, err
	}
	m.say("%s: half of the peak, %.0f/s for %s", s.name, r.peak/2, p.calm)
	calm, err := s.open(ctx, schedule{{r.peak / 2, p.calm}}, m.connections)
	if err != nil {
		return nil, err
	}
	r.calmRate = r.peak / 2
	r.calm = spreadOf(times(calm, good, sample.late))
	r.calmShed = countOf(calm)[shed]

	m.say("%s: %d× the peak, %.0f/s for %s, then half of it for %s", s.name, factor, factor*r.peak, p.overload, p.recovery)
	sched := schedule{{factor * r.peak, p.overload}, {r.calmRate, p.recovery}}
	began := read(consumers)
	group := run.New(ctx)
	group.Go("read the CPUs", func(ctx context.Context) error {
		pause(ctx, p.overload)
		r.usedOver = usage(consumers, began)
		return nil
	})
	samples, err := s.open(ctx, sched, m.connections)
	group.Stop(nil) // it is done, unless there was an error
	if err := errors.Join(err, group.Wait()); err != nil {
		return nil, err
	}
	r.overloaded(samples, p)
	r.after, r.recovered = normalAfter(between(samples, p.overload, sched.lasts()), p.overload, sched.lasts(),
		time.Duration(normalFactor*float64(r.calm.p99)))
	r.peakAgain, _ = goodput(s.closed(ctx, r.callers, p.calm), 0, p.calm)
	return r, ctx.Err()
}

// overloaded sums the overload up.
func (r *result) overloaded(samples []sample, p plan) {
	over := between(samples, 0, p.overload)
	r.counts = countOf(over)
	r.offered = float64(r.counts.sent()) / p.overload.Seconds()
	r.goodput, r.worst = goodput(over, 0, p.overload)
	r.good = spreadOf(times(over, good, sample.late))
	r.shedDue = spreadOf(times(over, shed, sample.late))
	r.shedSent = spreadOf(times(over, shed, sample.served))
	r.lag = lag(over)
}

// findPeak doubles the callers of a closed loop until there are no more good
// answers a second, then measures the best number of them for longer.
func (m *measurer) findPeak(ctx context.Context, s *subject, p plan, r *result, consumers []consumer) error {
	s.closed(ctx, 2, p.step) // warms up
	best, most := 1, 0.0
	for callers, vain := 1, 0; callers <= mostCallers && vain < 2; callers *= 2 {
		got, _ := goodput(s.closed(ctx, callers, p.step), 0, p.step)
		m.say("%s: %d callers, %.0f good answers/s", s.name, callers, got)
		if err := ctx.Err(); err != nil {
			return err
		}
		if got < most*growth {
			vain++ // a bad moment of the machine is not the peak: two are
			continue
		}
		best, most, vain = callers, got, 0
	}
	before := read(consumers)
	samples := s.closed(ctx, best, p.calm)
	r.usedPeak = usage(consumers, before)
	r.callers = best
	r.peak, _ = goodput(samples, 0, p.calm)
	r.atPeak = spreadOf(times(samples, good, sample.late))
	m.say("%s: the peak is %.0f good answers/s", s.name, r.peak)
	if r.peak == 0 {
		return errors.Join(ctx.Err(), fmt.Errorf("%s gave no good answer", s.name))
	}
	return ctx.Err()
}
