package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

const maxListedRemoved = 20

// readBaseline returns nil if no baseline is named.
func (f *runFlags) readBaseline() (*golden.Report, error) {
	if f.baseline == "" {
		return nil, nil
	}
	r, err := golden.ReadBaseline(f.baseline)
	return r, localfile.ShortenError(err)
}

// checkBaseline rejects a baseline without any of the cases, because it belongs to
// other cases. A few selected cases may all be new.
func (f *runFlags) checkBaseline(baseline *golden.Report, cases []golden.Case) error {
	if baseline == nil || f.selectsCases() || baseline.HasAny(cases) {
		return nil
	}
	return fmt.Errorf("%s: has none of these cases (its first is %q, theirs is %q): it is the report of other cases; write a new one with golden run --json",
		f.baseline, terminal.Truncate(terminal.OneLine(baseline.Cases[0].ID), terminal.DefaultWidth), terminal.Truncate(terminal.OneLine(cases[0].ID), terminal.DefaultWidth))
}

// compareBaseline compares the report with the baseline. Filtered cases do not count
// as removed.
func (f *runFlags) compareBaseline(baseline, r *golden.Report) golden.Comparison {
	c := golden.CompareReports(baseline, r)
	if f.selectsCases() {
		c.Gone = nil
	}
	return c
}

func printComparison(out io.Writer, baseline, r *golden.Report, c *golden.Comparison, maxNew int) {
	why := make(map[string]string, len(r.Cases))
	for i := range r.Cases {
		why[r.Cases[i].ID] = strings.Join(r.Cases[i].Differences, "; ")
	}
	if was, is := baseline.Classifier, r.Classifier; was != is {
		fmt.Fprintf(out, "warning: another reader than in the baseline: %s, was %s\n", terminal.OneLine(is.String()), terminal.OneLine(was.String()))
	}
	for _, id := range c.Regressions {
		fmt.Fprintf(out, "regression: %s: %s\n", terminal.OneLine(id), terminal.OneLine(why[id]))
	}
	for _, id := range c.NewFailures {
		fmt.Fprintf(out, "new failure: %s: %s\n", terminal.OneLine(id), terminal.OneLine(why[id]))
	}
	for _, id := range c.Gone[:min(len(c.Gone), maxListedRemoved)] {
		fmt.Fprintf(out, "gone: %s\n", terminal.OneLine(id))
	}
	if more := len(c.Gone) - maxListedRemoved; more > 0 {
		fmt.Fprintf(out, "gone: … and %d more\n", more)
	}
	fmt.Fprintf(out, "against the baseline: %s, %s (%d may be), %d failed before, %d fixed, %d gone\n",
		plaintext.CountNoun(len(c.Regressions), "regression"), plaintext.CountNoun(len(c.NewFailures), "new failure"), maxNew,
		len(c.KnownFailed), len(c.Fixed), len(c.Gone))
}
