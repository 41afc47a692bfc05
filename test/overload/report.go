package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"
)

type report struct {
	slowConnections       int // of each kind
	baseline, routes, dry *result
	slow                  []*slowResult
	neighbour             *neighbourResult
	soak                  *soakResult
	foreignCPU            float64 // maximum share of the CPUs that other programs used
	failureCount          int
	failures              []string // the first ones
}

func (r *report) printTo(out io.Writer) {
	if r.routes != nil {
		r.printOverload(out)
	}
	if r.neighbour != nil {
		r.neighbour.printTo(out)
	}
	if r.soak != nil {
		r.soak.printTo(out)
	}
	if r.isMachineBusy() {
		fmt.Fprintf(out, "\nother programs used %.0f %% of the CPUs, more than %.0f %%: times and rates are not judged\n", 100*r.foreignCPU, 100*maxForeignCPU)
	}
	fmt.Fprintf(out, "\nfailures: %d\n", r.failureCount)
	for _, what := range r.failures {
		fmt.Fprintf(out, "  %s\n", what)
	}
}

func (r *report) printOverload(out io.Writer) {
	fmt.Fprintf(out, "\n%d requests at a time, an agent that takes %s: at most %.0f good answers/s; %d CPUs\n",
		inFlight, agentDelay, inFlight/agentDelay.Seconds(), runtime.NumCPU())
	fmt.Fprintln(out, "the router: store.sync 100ms, lexical classifier, auth.mode none, no limit but max_in_flight")
	r.printResults(out)
	if len(r.slow) > 0 {
		fmt.Fprintf(out, "\n%d slow connections per kind, with other callers at %.0f/s\n", r.slowConnections, r.routes.peak/2)
		r.printSlow(out)
	}
}

// printResults prints one row per measurement. The goals are for routes: dry runs have
// no agent, so that they are limited by the CPUs, which the callers share.
func (r *report) printResults(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\trouter\tbaseline: bare server\tdry runs\tgoal")
	row := func(name, goal string, format func(*result) string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, format(r.routes), format(r.baseline), format(r.dry), goal)
	}
	row("peak, good/s (callers)", "", func(r *result) string { return fmt.Sprintf("%.0f (%d)", r.peak, r.callers) })
	row("half of the peak: p50, p99, max ms", "", func(r *result) string { return r.half.String() })
	row("  shed", "0", func(r *result) string { return strconv.Itoa(r.halfShed) })
	row(fmt.Sprintf("%d× the peak: sent, of those due", overloadFactor), "", func(r *result) string {
		sent := r.counts.countSent()
		return fmt.Sprintf("%.2f", float64(sent)/float64(sent+r.counts[outcomeUnsent]))
	})
	row("  good/s, of the peak", "≥ 0.90", func(r *result) string { return fmt.Sprintf("%.2f", r.goodput/r.peak) })
	row("  good: p50, p99, max ms", "", func(r *result) string { return r.good.String() })
	row("  shed: p50, p99, max ms", "≤ 50", func(r *result) string { return r.shed.String() })
	row("  good, shed, other, broken", "other, broken 0", func(r *result) string {
		return fmt.Sprintf("%d, %d, %d, %d", r.counts[outcomeGood], r.counts[outcomeShed], r.counts[outcomeInvalid], r.counts[outcomeBroken])
	})
	row("recovered after s", "≤ 5", (*result).formatRecovery)
	_ = w.Flush() // cannot be reported
}

func (r *result) formatRecovery() string {
	if !r.recovered {
		return "never"
	}
	return fmt.Sprintf("%.1f", r.recoveredAfter.Seconds())
}

func (n *neighbourResult) printTo(out io.Writer) {
	fmt.Fprintf(out, "\na tenant with %d requests/s, alone and beside a tenant with %d callers that floods the router; a store of %s\n", quietPerSecond, floodCallers, smallStore)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "alone: p50, p99, max ms\t%s\t\n", n.alone)
	fmt.Fprintf(w, "beside the flood: p50, p99, max ms\t%s\t\n", n.beside)
	fmt.Fprintf(w, "bare server, alone: p50, p99, max ms\t%s\t\n", n.bare[0])
	fmt.Fprintf(w, "bare server, beside the flood: the same\t%s\t\n", n.bare[1])
	fmt.Fprintf(w, "alone: mean ms of the stages\t%s\t\n", n.stages[0])
	fmt.Fprintf(w, "beside the flood: the same\t%s\t\n", n.stages[1])
	fmt.Fprintf(w, "  p99, of that alone\t%.2f\tgoal ≤ %.2f\n", float64(n.beside.p99)/float64(n.alone.p99), maxSlowdown)
	fmt.Fprintf(w, "  success, %%\t%.2f\tgoal ≥ %.1f\n", 100*n.success(), 100*minSuccess)
	fmt.Fprintf(w, "records and keys from before that are missing\t%d of %d\tgoal 0\n", n.missing, n.kept)
	_ = w.Flush() // cannot be reported
	fmt.Fprint(out, "the flood: ")
	n.flood.printCounts(out)
}

func (r *report) printSlow(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "slow\tp99 ms without (baseline)\twith\tratio, goal ≤ 1.50\tcallers shed, goal 0\topened\tended by the router")
	for _, s := range r.slow {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%d\t%d\t%v\n", s.kind, formatMillis(s.without.p99), formatMillis(s.with.p99),
			float64(s.with.p99)/float64(s.without.p99), s.shed, s.stats.opened, s.stats.ends)
	}
	_ = w.Flush() // cannot be reported
}

func (s distribution) String() string {
	return formatMillis(s.p50) + ", " + formatMillis(s.p99) + ", " + formatMillis(s.max)
}

func formatMillis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64)
}
