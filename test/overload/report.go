package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

type report struct {
	opts               options
	floor, routes, dry *result
	slow               []*slowResult
	usageLines         []string // resources of the router after each part
	loggedErrors       map[string]int
	failureCount       int
	failures           []string // the first ones
}

func (r *report) printTo(out io.Writer) {
	o := r.opts
	fmt.Fprintf(out, "\n%d requests at a time, an agent that takes %s: at most %.0f good answers/s; %d CPUs\n",
		o.inFlight, o.work, float64(o.inFlight)/o.work.Seconds(), runtime.NumCPU())
	fmt.Fprintln(out, "the router: store.sync 100ms, lexical classifier, auth.mode none, no limit but max_in_flight")
	printTable(out, "routes\trouter\tbaseline: bare server\tgoal", resultRows(r.routes, r.floor))
	if len(r.slow) > 0 {
		fmt.Fprintf(out, "\n%d slow connections per kind, with other callers at %.0f/s\n", o.slow, r.routes.halfRate)
		printTable(out, "slow\tat once\tp99 ms without (baseline)\twith\tratio, goal ≤ 1.50\tsent late by\tcallers shed without\twith, goal 0\tended by the router, after s", r.formatSlowRows())
	}
	fmt.Fprintf(out, "\nDry runs: no agent; the limit is the CPUs, which the callers share\n")
	printTable(out, "dry runs\trouter\t\t", resultRows(r.dry, nil))
	fmt.Fprintln(out)
	for _, line := range r.usageLines {
		fmt.Fprintf(out, "resources of the router %s\n", line)
	}
	fmt.Fprintf(out, "errors logged by the router: %s\n", process.FormatCounts(r.loggedErrors))
	fmt.Fprintf(out, "failures: %d\n", r.failureCount)
	for _, what := range r.failures {
		fmt.Fprintf(out, "  %s\n", what)
	}
}

func printTable(out io.Writer, head string, rows []string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // cannot be reported
}

// resultRows formats a result beside its baseline, which may be nil.
func resultRows(of, floor *result) []string {
	var lines []string
	add := func(what, goal string, say func(*result) string) {
		beside := ""
		if floor != nil {
			beside = say(floor)
		} else {
			goal = ""
		}
		lines = append(lines, what+"\t"+say(of)+"\t"+beside+"\t"+goal)
	}
	add("peak, good/s (callers)", "", func(r *result) string { return fmt.Sprintf("%.0f (%d)", r.peak, r.callers) })
	add("  p50, p99, max ms", "", func(r *result) string { return r.peakLatency.String() })
	add("half of the peak: p50, p99, max ms", "", func(r *result) string { return r.halfLatency.String() })
	add("  shed", "0", func(r *result) string { return strconv.Itoa(r.halfShed) })
	add(fmt.Sprintf("%d× the peak: sent/s (of those due)", overloadFactor), "", func(r *result) string {
		return fmt.Sprintf("%.0f (%.0f %%)", r.offered, 100*divideOrNaN(float64(r.counts.countSent()), float64(r.counts.countSent()+r.counts[outcomeUnsent])))
	})
	add("  sent late by ms: p50, p99, max", "", func(r *result) string { return r.sendDelay.String() })
	add("  good/s (worst second)", "", func(r *result) string { return fmt.Sprintf("%.0f (%.0f)", r.goodput, r.worstSecond) })
	add("  good, of the peak", "≥ 0.90", func(r *result) string { return fmt.Sprintf("%.2f", divideOrNaN(r.goodput, r.peak)) })
	add("  good: p50, p99, max ms", "", func(r *result) string { return r.goodLatency.String() })
	add("  good, shed, other, broken", "other, broken 0", func(r *result) string {
		return fmt.Sprintf("%d, %d, %d, %d", r.counts[outcomeGood], r.counts[outcomeShed], r.counts[outcomeInvalid], r.counts[outcomeBroken])
	})
	add("  shed: p50, p99, max ms since due", "≤ 50", func(r *result) string { return r.shedLatency.String() })
	add("  shed: p50, p99, max ms since sent", "≤ 50", func(r *result) string { return r.shedServiceTime.String() })
	add("recovered after s", "≤ 5", func(r *result) string {
		if !r.recovered {
			return "never"
		}
		return fmt.Sprintf("%.1f", r.recoveredAfter.Seconds())
	})
	add("peak at the end, good/s", "", func(r *result) string { return fmt.Sprintf("%.0f", r.finalPeak) })
	add("CPUs at the peak", "", func(r *result) string { return r.peakCPU })
	add("CPUs in the overload", "", func(r *result) string { return r.overloadCPU })
	return lines
}

func (r *report) formatSlowRows() []string {
	var lines []string
	for _, s := range r.slow {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s\t%.2f\t%s\t%d of %d\t%d of %d\t%s", s.kind, s.stats.maxOpen,
			formatMillis(s.without.p99), formatMillis(s.with.p99), divideOrNaN(float64(s.with.p99), float64(s.without.p99)), formatMillis(s.sendDelay.p99),
			s.withoutAll[outcomeShed], s.withoutAll.countSent(), s.withAll[outcomeShed], s.withAll.countSent(), s.stats))
	}
	return lines
}

// String lists how and when the router ended connections, and the age of the oldest
// one that it did not end.
func (e *slowStats) String() string {
	var words []string
	for _, how := range slices.Sorted(maps.Keys(e.ends)) {
		s := newDistribution(e.ends[how])
		words = append(words, fmt.Sprintf("%d %s after %.1f (at most %.1f)", s.n, how, s.p50.Seconds(), s.max.Seconds()))
	}
	said := cmp.Or(strings.Join(words, ", "), "none") + fmt.Sprintf(" of %d", e.opened)
	if len(e.openAtEnd) > 0 {
		said += fmt.Sprintf("; the oldest left was open for %.1f", slices.Max(e.openAtEnd).Seconds())
	}
	return said
}

func (s distribution) String() string {
	if s.n == 0 {
		return "none"
	}
	return formatMillis(s.p50) + ", " + formatMillis(s.p99) + ", " + formatMillis(s.max)
}

func formatMillis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64)
}
