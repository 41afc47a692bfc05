package main

import (
	"fmt"
	"io"
	"text/tabwriter"
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
		for _, what := range f.violations[:min(len(f.violations), maxListed)] {
			fmt.Fprintf(out, "%s: %s\n", f.name, what)
		}
	}
}

// addFigures adds the counters of the ledger.
func (l *ledger) addFigures(r *report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	statuses, executions, callbacks := map[string]int{}, map[string]int{}, map[int]int{}
	for _, p := range l.requests {
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
	r.addFigure("requests accepted", "%d", len(l.requests))
	r.addFigure("ended, by status", "%v", statuses)
	r.addFigure("executions, by agent", "%v", executions)
	r.addFigure("callbacks, by HTTP status", "%v", callbacks)
}
