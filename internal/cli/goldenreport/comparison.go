package goldenreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// maxListedRemoved bounds the cases of the baseline that are listed as removed.
const maxListedRemoved = 20

// PrintComparison prints what has changed since the baseline. maxNew is the number of new
// cases that may fail.
func PrintComparison(out io.Writer, baseline, r *golden.Report, c *golden.Comparison, maxNew int) {
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
