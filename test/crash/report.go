package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/test/internal/process"
)

// report is the outcome of one part.
type report struct {
	title   string
	figures []figure
	checks  []checkResult
}

type figure struct{ name, value string }

// maxListed bounds the violations that are listed per check.
const maxListed = 20

func (r *report) addFigure(what, format string, values ...any) {
	r.figures = append(r.figures, figure{name: what, value: fmt.Sprintf(format, values...)})
}

func (r *report) countViolations() int {
	n := 0
	for _, f := range r.checks {
		n += len(f.violations)
	}
	return n
}

func (r *report) printTo(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n\n", r.title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.figures {
		fmt.Fprintf(w, "%s\t%s\n", f.name, f.value)
	}
	fmt.Fprintln(w, "\t")
	for _, f := range r.checks {
		fmt.Fprintf(w, "%s\t%d\n", f.name, len(f.violations))
	}
	_ = w.Flush() // cannot be reported
	for _, f := range r.checks {
		if len(f.violations) > 0 {
			fmt.Fprintf(out, "\n%s:\n", f.name)
		}
		for _, what := range f.violations[:min(len(f.violations), maxListed)] {
			fmt.Fprintf(out, "  %s\n", what)
		}
	}
}

func (c *cycleRun) newReport(lived time.Duration, findings []checkResult) *report {
	r := &report{
		title: fmt.Sprintf("%d kills in %.0f s, %d more during the start, one graceful shutdown; seed %d",
			c.opts.cycles, lived.Seconds(), c.earlyKills, c.opts.seed),
		checks: findings,
	}
	c.ledger.addFigures(r)
	r.addFigure("orders with a key, resent after a kill", "%d, %d", c.keyed, c.resent)
	slices.Sort(c.startTimes)
	r.addFigure("start to listening, ms: p50, p99, max of all", "%s, %s, %s of %d",
		formatMillis(c.startTimes[len(c.startTimes)/2]), formatMillis(c.startTimes[len(c.startTimes)*99/100]), formatMillis(c.startTimes[len(c.startTimes)-1]), len(c.startTimes))
	r.addFigure("errors logged by the routers", "%s", process.FormatCounts(c.loggedErrors))
	return r
}

// addFigures adds the counters of the ledger.
func (l *ledger) addFigures(r *report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.addFigure("requests accepted", "%d", len(l.requests))
	posts := map[string]int{}
	for status, n := range l.postStatuses {
		what := strconv.Itoa(status)
		if status == 0 {
			what = "no answer"
		}
		posts[what] += n
	}
	r.addFigure("answers to POST", "%s", process.FormatCounts(posts))
	statuses, tasks := map[string]int{}, map[string]int{}
	unknown, heard := 0, 0
	for _, p := range l.requests {
		heard += min(p.finalEvents, 1)
		if p.answer == nil {
			continue
		}
		statuses[string(p.answer.Status)]++
		uncertain := 0
		for i := range p.answer.Tasks {
			if e := p.answer.Tasks[i].Error; e != nil {
				tasks[string(e.Code)]++
				if e.Code == contract.TaskOutcomeUnknown {
					uncertain = 1
				}
			}
		}
		unknown += uncertain
	}
	r.addFigure("ended", "%s", process.FormatCounts(statuses))
	r.addFigure("ended with a task outcome_unknown", "%d", unknown)
	r.addFigure("errors of tasks", "%s", process.FormatCounts(tasks))
	r.addFigure("final events seen", "%d", heard)
	work := map[string]int{}
	for _, e := range l.executions {
		work[e.agent]++
	}
	r.addFigure("executions", "%s", process.FormatCounts(work))
	told := map[string]int{}
	for _, c := range l.callbacks {
		told[cmp.Or(http.StatusText(c.status), strconv.Itoa(c.status))]++
	}
	r.addFigure("callbacks answered", "%s", process.FormatCounts(told))
}

func formatMillis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 0, 64)
}
