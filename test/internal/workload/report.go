package workload

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is the outcome of one part.
type Report struct {
	Title   string
	figures []figure
	Checks  []CheckResult
}

type figure struct{ name, value string }

// maxListed bounds the violations that are listed per check.
const maxListed = 20

// AddFigure adds a line with a measured value.
func (r *Report) AddFigure(what, format string, values ...any) {
	r.figures = append(r.figures, figure{name: what, value: fmt.Sprintf(format, values...)})
}

// CountViolations returns how many violations all checks found.
func (r *Report) CountViolations() int {
	n := 0
	for _, f := range r.Checks {
		n += len(f.Violations)
	}
	return n
}

// PrintTo prints the figures, the checks, and the first violations of each.
func (r *Report) PrintTo(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n\n", r.Title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.figures {
		fmt.Fprintf(w, "%s\t%s\n", f.name, f.value)
	}
	fmt.Fprintln(w, "\t")
	for _, f := range r.Checks {
		fmt.Fprintf(w, "%s\t%d\n", f.Name, len(f.Violations))
	}
	_ = w.Flush() // cannot be reported
	for _, f := range r.Checks {
		for _, what := range f.Violations[:min(len(f.Violations), maxListed)] {
			fmt.Fprintf(out, "%s: %s\n", f.Name, what)
		}
	}
}

// AddFigures adds the counters of the ledger.
func (l *Ledger) AddFigures(r *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	statuses, executions, callbacks := map[string]int{}, map[string]int{}, map[int]int{}
	unrecorded := 0
	for _, p := range l.requests {
		if p.unrecorded {
			unrecorded++
		}
		if p.answer != nil {
			statuses[string(p.answer.Status)]++
		}
	}
	for _, e := range l.executions {
		executions[e.agent]++
	}
	for _, c := range l.callbacks {
		callbacks[c.status]++
	}
	r.AddFigure("requests accepted", "%d", len(l.requests))
	r.AddFigure("ended, by status", "%v", statuses)
	r.AddFigure("executions, by agent", "%v", executions)
	r.AddFigure("callbacks, by HTTP status", "%v", callbacks)
	if unrecorded > 0 {
		r.AddFigure("answers whose record a kill prevented", "%d", unrecorded)
	}
	if l.turns > 0 {
		r.AddFigure("turns of sessions", "%d", l.turns)
	}
}
