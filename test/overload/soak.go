package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
)

const (
	soakTenants = 4
	soakCallers = 8 // tokens of a tenant
	soakPause   = 300 * time.Millisecond
	soakSamples = 120
	// The permitted growth of the live heap from the third to the fourth quarter.
	maxHeapGrowth = 0.10
	maxHeapNoise  = 4 // MiB
)

// soakResult contains the samples of a router under a constant mixed load.
type soakResult struct {
	lasted  time.Duration
	samples []resourceUsage
	traffic []*traffic
}

// measureSoak runs all operations of several tenants, so that every part of the small
// store is full most of the time, and samples what the router uses.
func (w *testbed) measureSoak(ctx context.Context, r *report) error {
	router, secret, err := w.startTenantRouter(ctx, "soak")
	if err != nil {
		return err
	}
	r.soak = &soakResult{}
	logProgress("soak: %d tenants for %s", soakTenants, w.opts.duration)
	group := run.New(ctx)
	for i := range soakTenants {
		t := newTraffic(newTenant(fmt.Sprintf("tenant-%d", i), router.Addr(), soakCallers, secret), w.opts.flood, soakPause, w.failures)
		r.soak.traffic = append(r.soak.traffic, t)
		group.Go(t.tenant.name, func(ctx context.Context) error {
			t.run(ctx, 1)
			return nil
		})
	}
	began := time.Now()
	for time.Since(began) < w.opts.duration && resilience.Sleep(ctx, w.opts.duration/soakSamples) {
		now, err := fetchUsage(ctx, router.Addr())
		if err != nil {
			w.failures.record("soak: %v", errors.Join(err, router.CheckRunning()))
			break
		}
		r.soak.samples = append(r.soak.samples, now)
	}
	r.soak.lasted = time.Since(began)
	group.Stop(nil)
	return errors.Join(group.Wait(), ctx.Err())
}

// usageColumns are the figures of a sample.
func usageColumns() []struct {
	name  string
	value func(resourceUsage) float64
} {
	return []struct {
		name  string
		value func(resourceUsage) float64
	}{
		{"live heap, MiB", func(u resourceUsage) float64 { return u.heapMiB }},
		{"RSS, MiB", func(u resourceUsage) float64 { return u.rssMiB }},
		{"goroutines", func(u resourceUsage) float64 { return float64(u.goroutines) }},
		{"open files", func(u resourceUsage) float64 { return float64(u.files) }},
	}
}

func (s *soakResult) column(value func(resourceUsage) float64) []float64 {
	values := make([]float64, len(s.samples))
	for i, u := range s.samples {
		values[i] = value(u)
	}
	return values
}

func (s *soakResult) printTo(out io.Writer) {
	fmt.Fprintf(out, "\na mixed load of %d tenants for %s; a store of %s\n", soakTenants, s.lasted.Round(time.Second), smallStore)
	perHour := float64(len(s.samples)) / s.lasted.Hours()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tfirst\tmedians of the quarters\tlast\tslope of the second half, per hour")
	for _, c := range usageColumns() {
		values := s.column(c.value)
		if len(values) < 4 {
			continue
		}
		fmt.Fprintf(w, "%s\t%.0f\t", c.name, values[0])
		for q := range 4 {
			fmt.Fprintf(w, "%.0f ", quarterMedian(values, q))
		}
		fmt.Fprintf(w, "\t%.0f\t%+.1f\n", values[len(values)-1], slope(values[len(values)/2:])*perHour)
	}
	_ = w.Flush() // cannot be reported
	for _, t := range s.traffic {
		fmt.Fprintf(out, "%s: ", t.tenant.name)
		t.printCounts(out)
	}
}

// judgeSoak returns an error text if the live heap grew in the second half.
func judgeSoak(s *soakResult) (broken []string) {
	if len(s.samples) < 8 {
		return []string{"soak: too few samples"}
	}
	heap := s.column(func(u resourceUsage) float64 { return u.heapMiB })
	third, fourth := quarterMedian(heap, 2), quarterMedian(heap, 3)
	if limit := third*(1+maxHeapGrowth) + maxHeapNoise; fourth > limit {
		broken = append(broken, fmt.Sprintf("soak: a live heap of %.0f MiB in the last quarter, at most %.0f expected after %.0f in the quarter before", fourth, limit, third))
	}
	return broken
}

// quarterMedian returns the median of a quarter (0 to 3) of the values.
func quarterMedian(values []float64, quarter int) float64 {
	part := slices.Sorted(slices.Values(values[len(values)*quarter/4 : len(values)*(quarter+1)/4]))
	return part[len(part)/2]
}

// slope returns the slope of the regression line, per sample.
func slope(values []float64) float64 {
	n := float64(len(values))
	var sumX, sumY, sumXX, sumXY float64
	for i, y := range values {
		x := float64(i)
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	if d := n*sumXX - sumX*sumX; d > 0 {
		return (n*sumXY - sumX*sumY) / d
	}
	return 0
}
