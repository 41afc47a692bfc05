package pycheck

import (
	"fmt"
	"slices"
	"strings"
)

// maxListed bounds the findings a summary spells out; the errors come first.
const maxListed = 10

// Summary renders the report for people: a count, then the worst findings by
// line. file names the source.
//
//	etl_job.py: 16 findings in 87 lines (3 errors, 8 warnings, 5 notes).
//	    36  error    eval-exec: eval runs whatever its argument says
//
// What to do about a finding, which follows the semicolon of its message, is
// left to the findings themselves.
func (r Report) Summary(file string) string {
	var b strings.Builder
	total := len(r.Findings) + r.Omitted
	if total == 0 {
		fmt.Fprintf(&b, "%s: nothing to complain about in %s.\n", file, plural(r.Lines, "line"))
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s in %s (%s, %s, %s).\n", file, plural(total, "finding"), plural(r.Lines, "line"),
		plural(r.Count(Error), "error"), plural(r.Count(Warning), "warning"), plural(r.Count(Note), "note"))
	listed := r.worst(maxListed)
	for _, f := range listed {
		what, _, _ := strings.Cut(f.Message, "; ")
		fmt.Fprintf(&b, "%6d  %-7s  %s: %s\n", f.Line, f.Severity, f.Rule, what)
	}
	if more := total - len(listed); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}

// worst returns the n gravest findings, by line.
func (r Report) worst(n int) []Finding {
	rank := map[Severity]int{Error: 0, Warning: 1, Note: 2}
	out := slices.Clone(r.Findings)
	slices.SortStableFunc(out, func(a, b Finding) int { return rank[a.Severity] - rank[b.Severity] })
	out = out[:min(n, len(out))]
	slices.SortStableFunc(out, func(a, b Finding) int { return a.Line - b.Line })
	return out
}
