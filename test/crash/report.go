package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// report is what one part of a run found.
type report struct {
	title    string
	figures  []figure
	findings []finding
}

// figure is one line of what happened.
type figure struct{ what, value string }

// mostNamed is how many wrong things are named of each check.
const mostNamed = 20

func (r *report) add(what, format string, values ...any) {
	r.figures = append(r.figures, figure{what: what, value: fmt.Sprintf(format, values...)})
}

// wrong counts what is.
func (r *report) wrong() int {
	n := 0
	for _, f := range r.findings {
		n += len(f.wrong)
	}
	return n
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n\n", r.title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.figures {
		fmt.Fprintf(w, "%s\t%s\n", f.what, f.value)
	}
	fmt.Fprintln(w, "\t")
	for _, f := range r.findings {
		fmt.Fprintf(w, "%s\t%d\n", f.what, len(f.wrong))
	}
	_ = w.Flush() // the reader has gone away
	for _, f := range r.findings {
		if len(f.wrong) > 0 {
			fmt.Fprintf(out, "\n%s:\n", f.what)
		}
		for _, what := range f.wrong[:min(len(f.wrong), mostNamed)] {
			fmt.Fprintf(out, "  %s\n", what)
		}
	}
}

// report says what came of the cycles.
func (c *cycles) report(lived time.Duration, findings []finding) *report {
	r := &report{
		title: fmt.Sprintf("%d times SIGKILL in %.0f s, %d more before it listened, once SIGTERM; seed %d",
			c.opts.cycles, lived.Seconds(), c.stillborn, c.opts.seed),
		findings: findings,
	}
	c.ledger.figures(r)
	r.add("orders with a key, sent again after a crash", "%d, %d", c.keyed, c.resent)
	slices.Sort(c.starts)
	r.add("start to listening, ms: p50, p99, max of all", "%s, %s, %s of %d",
		inMillis(c.starts[len(c.starts)/2]), inMillis(c.starts[len(c.starts)*99/100]), inMillis(c.starts[len(c.starts)-1]), len(c.starts))
	r.add("errors the routers logged", "%s", tally(c.complaints))
	return r
}

// figures adds what the ledger can count.
func (l *ledger) figures(r *report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.add("requests promised", "%d", len(l.promises))
	posts := map[string]int{}
	for status, n := range l.posts {
		what := strconv.Itoa(status)
		if status == 0 {
			what = "cut off"
		}
		posts[what] += n
	}
	r.add("answers to POST", "%s", tally(posts))
	statuses, tasks := map[string]int{}, map[string]int{}
	unknown, heard := 0, 0
	for _, p := range l.promises {
		heard += min(p.finals, 1)
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
	r.add("ended", "%s", tally(statuses))
	r.add("ended with a task outcome_unknown", "%d", unknown)
	r.add("errors of tasks", "%s", tally(tasks))
	r.add("ends told by a stream of events", "%d", heard)
	work := map[string]int{}
	for _, e := range l.work {
		work[e.agent]++
	}
	r.add("executions", "%s", tally(work))
	told := map[string]int{}
	for _, c := range l.callbacks {
		told[cmp.Or(http.StatusText(c.status), strconv.Itoa(c.status))]++
	}
	r.add("callbacks answered", "%s", tally(told))
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

func inMillis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 0, 64)
}
