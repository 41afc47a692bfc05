package pycheck

import (
	"cmp"
	"slices"
	"strings"
)

// Severity says how much a finding matters.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"   // wrong or unsafe
	Warning Severity = "warning" // likely to go wrong
	Note    Severity = "note"    // style and upkeep
)

// Finding is one thing a rule found.
type Finding struct {
	Line     int      `json:"line"`
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Code     string   `json:"code"` // the line, trimmed and cut
}

// Options steers a check; its zero value checks a plain script.
type Options struct {
	Notebook bool // apply the rules for Databricks notebooks as well
}

// Report is the result of a check.
type Report struct {
	Lines    int // of the source
	Code     int // lines that hold code
	Findings []Finding
	Omitted  int // findings beyond MaxFindings
	Notebook bool
}

// MaxFindings bounds a report.
const MaxFindings = 200

// maxCode bounds Finding.Code, in characters.
const maxCode = 80

// Check applies every rule to src. Findings come by line, then by rule.
func Check(src string, opts Options) Report {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(src, "\ufeff"))
	src = strings.ToValidUTF8(src, "\ufffd")
	p := parse(src)
	p.notebook = opts.Notebook || IsNotebook(src)

	c := collector{source: p, quiet: silenced(p)}
	for _, r := range rules {
		if r.notebook && !p.notebook || r.script && p.notebook {
			continue
		}
		c.rule = r
		r.check(p, c.add)
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	c.found = slices.Compact(c.found)
	n := min(len(c.found), MaxFindings)
	r := Report{
		Lines: p.lineCount(), Code: p.codeLines(), Notebook: p.notebook,
		Findings: c.found[:n:n], Omitted: len(c.found) - n,
	}
	r.quote(p.lines)
	return r
}

// quote fills in the code of the findings that are kept; a line is cut once,
// however many findings it has.
func (r Report) quote(lines []string) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if i > 0 && r.Findings[i-1].Line == f.Line {
			f.Code = r.Findings[i-1].Code
			continue
		}
		f.Code = clip(strings.TrimSpace(lines[f.Line-1]), maxCode)
	}
}

// Count returns how many findings have the severity.
func (r Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// IsNotebook reports whether src is a Databricks notebook exported as source.
func IsNotebook(src string) bool {
	return strings.HasPrefix(strings.TrimLeft(src, " \t\r\n"), "# Databricks notebook source")
}

// collector makes findings of what rules report.
type collector struct {
	source *source
	rule   rule
	quiet  map[int]bool
	found  []Finding
}

func (c *collector) add(line int, message string) {
	line = min(max(line, 1), c.source.lineCount())
	if c.quiet[line] {
		return
	}
	c.found = append(c.found, Finding{Line: line, Rule: c.rule.name, Severity: c.rule.severity, Message: message})
}

// lineCount does not count the empty line behind the last line end.
func (p *source) lineCount() int {
	if n := len(p.lines); n > 1 && p.lines[n-1] == "" {
		return n - 1
	}
	return len(p.lines)
}

func (p *source) codeLines() int {
	last, n := 0, 0 // an open string may reach behind the last line
	for _, s := range p.all {
		for _, t := range s.toks {
			if from := max(t.line, last+1); t.end >= from {
				n += t.end - from + 1
				last = t.end
			}
		}
	}
	return min(n, p.lineCount())
}

// silenced holds the lines that end in "# noqa".
func silenced(p *source) map[int]bool {
	quiet := make(map[int]bool)
	for _, r := range p.remarks {
		if strings.Contains(strings.ToLower(r.text), "# noqa") {
			quiet[r.line] = true
		}
	}
	return quiet
}

// clip shortens s to n characters, and looks at no more of it than that.
func clip(s string, n int) string {
	cut, seen := 0, 0
	for at := range s {
		if seen == n-1 {
			cut = at
		}
		if seen == n {
			return s[:cut] + "…"
		}
		seen++
	}
	return s
}
