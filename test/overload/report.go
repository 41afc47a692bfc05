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
)

// report is all there is to say of a run.
type report struct {
	opts               options
	floor, routes, dry *result
	slow               []*slowResult
	held               []string // by the router, over the run
	complaints         map[string]int
	wrongs             int
	wrong              []string // the first of them
}

func (r *report) print(out io.Writer) {
	o := r.opts
	fmt.Fprintf(out, "\n%d requests at a time, an agent that takes %s: at most %.0f good answers/s; %d CPUs\n",
		o.inFlight, o.work, float64(o.inFlight)/o.work.Seconds(), runtime.NumCPU())
	fmt.Fprintln(out, "the router: store.sync 100ms, lexical classifier, auth.mode none, no limit but max_in_flight")
	table(out, "routes\trouter\tfloor: bare server\tgoal", rows(r.routes, r.floor))
	if len(r.slow) > 0 {
		fmt.Fprintf(out, "\n%d slow connections of a kind, and ordinary callers at %.0f/s beside them\n", o.slow, r.routes.calmRate)
		table(out, "slow\tat once\tp99 ms without (floor)\twith\tratio, goal ≤ 1.50\tsent late by\tcallers shed without\twith, goal 0\tended by the router, after s", r.slowRows())
	}
	fmt.Fprintf(out, "\nDry runs: no agent, only CPUs, which the callers share\n")
	table(out, "dry runs\trouter\t\t", rows(r.dry, nil))
	fmt.Fprintln(out)
	for _, line := range r.held {
		fmt.Fprintf(out, "the router holds %s\n", line)
	}
	fmt.Fprintf(out, "errors the router logged: %s\n", tally(r.complaints))
	fmt.Fprintf(out, "wrong: %d\n", r.wrongs)
	for _, what := range r.wrong {
		fmt.Fprintf(out, "  %s\n", what)
	}
}

func table(out io.Writer, head string, rows []string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // the reader has gone away
}

// rows says the same of a subject and of its floor, if it has one.
func rows(of, floor *result) []string {
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
	add("  p50, p99, max ms", "", func(r *result) string { return r.atPeak.String() })
	add("half of it: p50, p99, max ms", "", func(r *result) string { return r.calm.String() })
	add("  shed", "0", func(r *result) string { return strconv.Itoa(r.calmShed) })
	add(fmt.Sprintf("%d× the peak: sent/s (of those due)", factor), "", func(r *result) string {
		return fmt.Sprintf("%.0f (%.0f %%)", r.offered, 100*ratio(float64(r.counts.sent()), float64(r.counts.sent()+r.counts[unsent])))
	})
	add("  sent late by ms: p50, p99, max", "", func(r *result) string { return r.lag.String() })
	add("  good/s (worst second)", "", func(r *result) string { return fmt.Sprintf("%.0f (%.0f)", r.goodput, r.worst) })
	add("  good, of the peak", "≥ 0.90", func(r *result) string { return fmt.Sprintf("%.2f", ratio(r.goodput, r.peak)) })
	add("  good: p50, p99, max ms", "", func(r *result) string { return r.good.String() })
	add("  good, shed, other, broken", "other, broken 0", func(r *result) string {
		return fmt.Sprintf("%d, %d, %d, %d", r.counts[good], r.counts[shed], r.counts[other], r.counts[broken])
	})
	add("  shed: p50, p99, max ms since due", "≤ 50", func(r *result) string { return r.shedDue.String() })
	add("  shed: p50, p99, max ms since sent", "≤ 50", func(r *result) string { return r.shedSent.String() })
	add("normal again after s", "≤ 5", func(r *result) string {
		if !r.recovered {
			return "never"
		}
		return fmt.Sprintf("%.1f", r.after.Seconds())
	})
	add("peak once more, good/s", "", func(r *result) string { return fmt.Sprintf("%.0f", r.peakAgain) })
	add("CPUs at the peak", "", func(r *result) string { return r.usedPeak })
	add("CPUs in the overload", "", func(r *result) string { return r.usedOver })
	return lines
}

func (r *report) slowRows() []string {
	var lines []string
	for _, s := range r.slow {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s\t%.2f\t%s\t%d of %d\t%d of %d\t%s", s.kind, s.ends.most,
			millis(s.without.p99), millis(s.with.p99), ratio(float64(s.with.p99), float64(s.without.p99)), millis(s.lag.p99),
			s.withoutAll[shed], s.withoutAll.sent(), s.withAll[shed], s.withAll.sent(), s.ends))
	}
	return lines
}

// String says how many the router ended, in which way and after which time, and
// how long it did not end one.
func (e *slowEnds) String() string {
	var words []string
	for _, how := range slices.Sorted(maps.Keys(e.ends)) {
		s := spreadOf(e.ends[how])
		words = append(words, fmt.Sprintf("%d %s after %.1f (at most %.1f)", s.n, how, s.p50.Seconds(), s.max.Seconds()))
	}
	said := cmp.Or(strings.Join(words, ", "), "none") + fmt.Sprintf(" of %d", e.opened)
	if len(e.left) > 0 {
		said += fmt.Sprintf("; the oldest left was open for %.1f", slices.Max(e.left).Seconds())
	}
	return said
}

func (s spread) String() string {
	if s.n == 0 {
		return "none"
	}
	return millis(s.p50) + ", " + millis(s.p99) + ", " + millis(s.max)
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64)
}

// tally words counts, the greatest first.
func tally(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}
