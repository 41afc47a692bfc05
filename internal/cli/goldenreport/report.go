// Package goldenreport prints the results of golden cases for people: runs, comparisons with a
// baseline, differences of registries, fitted thresholds, measurements and candidates. Package
// golden computes them.
package goldenreport

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// PrintReport prints the failed cases, or all, and the counts.
func PrintReport(out io.Writer, r *golden.Report, all bool) error {
	p := terminal.NewPrinter(terminal.DetectLineOptions(out))
	for i := range r.Cases {
		if c := &r.Cases[i]; all || c.Failed() {
			PrintCase(p, c)
		}
	}
	if p.Len() > 0 {
		p.WriteByte('\n')
	}
	if r.Summary.Failed > 0 || all {
		printCounts(p, &r.Summary)
	}
	s := &r.Summary
	fmt.Fprintf(p, "%s: %d passed, %s, %d failed (%s; registry %s)\n", plaintext.CountNoun(s.Total, "case"),
		s.Passed, plaintext.CountNoun(s.Known, "known failure"), s.Failed, formatSources(r), explain.ShortenVersion(r.Registry))
	_, err := io.WriteString(out, p.String())
	return err
}

// formatSources returns how many classifications came from which source, and the
// model: "readings: llm 3, lexical 1; gemini flash".
func formatSources(r *golden.Report) string {
	var parts []string
	for _, n := range r.Summary.BySource {
		parts = append(parts, fmt.Sprintf("%s %d", n.Name, n.Count))
	}
	text := "readings: " + cmp.Or(strings.Join(parts, ", "), "none")
	if r.Classifier.Model != "" {
		text += "; " + terminal.OneLine(r.Classifier.Provider+" "+r.Classifier.Model)
	}
	return text
}

// PrintCase prints whether a case passed, and why not.
func PrintCase(p *terminal.Printer, c *golden.CaseResult) {
	switch {
	case c.Failed():
	case !c.Passed:
		fmt.Fprintf(p, "known %s: %s\n", terminal.OneLine(c.ID), terminal.OneLine(c.KnownFailure))
		return
	default:
		fmt.Fprintf(p, "ok    %s: %s\n", terminal.OneLine(c.ID), strings.Join(append([]string{string(c.Actual.Outcome)}, c.Actual.Agents...), " "))
		return
	}
	fmt.Fprintf(p, "FAIL  %s  %s:%d\n", terminal.OneLine(c.ID), terminal.OneLine(c.File), c.Line)
	const inset = 6
	p.WriteBlock("", inset, p.StyleText(terminal.Bold, terminal.Truncate(terminal.OneLine(c.Input), min(p.Width, terminal.DefaultWidth)-inset)))
	lines := slices.Clone(c.Differences)
	if c.Actual.Outcome != "" {
		lines = append(lines, fmt.Sprintf("read as %s, confidence %.2f (%s)", explain.FormatIntent(c.Actual.Intent, c.Actual.Domains), c.Actual.Confidence, c.Actual.Source))
	}
	if c.Because != "" {
		lines = append(lines, "because "+c.Because)
	}
	for _, line := range lines {
		p.WriteBlock("", inset, p.WrapText(terminal.Plain, line, inset))
	}
}

func printCounts(p *terminal.Printer, s *golden.Summary) {
	var parts []string
	for _, o := range s.ByOutcome {
		parts = append(parts, fmt.Sprintf("%s %d", o.Name, o.Count))
	}
	fmt.Fprintf(p, "outcomes  %s\n", strings.Join(parts, " · "))
	parts = parts[:0]
	for _, t := range s.ByTag {
		parts = append(parts, fmt.Sprintf("%s %d/%d", terminal.OneLine(t.Tag), t.Passed, t.Total))
	}
	if len(parts) > 0 {
		fmt.Fprintf(p, "tags      %s\n", strings.Join(parts, " · "))
	}
}
