package pycheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// upkeepRules find what makes code harder to keep: it works, for now.
var upkeepRules = []rule{
	{name: "unused-import", severity: Warning, check: unusedImport},
	{name: "wildcard-import", severity: Warning, check: wildcardImport},
	{name: "redefined-function", severity: Warning, check: redefined},
	{name: "shadowed-builtin", severity: Note, check: shadowedBuiltin},
	{name: "missing-docstring", severity: Note, script: true, check: missingDocstring},
	{name: "f-string-without-placeholder", severity: Note, check: emptyFString},
	{name: "print-call", severity: Note, script: true, check: printCall},
}

// maxLineLength is in characters.
const maxLineLength = 100

func longLine(p *source, report func(int, string)) {
	for i, line := range p.lines {
		n := utf8.RuneCountInString(line)
		if n <= maxLineLength || strings.Contains(line, "://") { // links cannot be folded
			continue
		}
		report(i+1, fmt.Sprintf("the line has %d characters; at most %d are easy to read", n, maxLineLength))
	}
}

// tabIndent reports once: the first line tells where, the count how bad.
func tabIndent(p *source, report func(int, string)) {
	first, last, n := 0, 0, 0
	for _, s := range p.all {
		if line := s.line(); line != last && strings.Contains(s.indent, "\t") {
			last = line
			n++
			if first == 0 {
				first = line
			}
		}
	}
	if n > 0 {
		report(first, fmt.Sprintf("indented with tabs (%s); use four spaces", plural(n, "line")))
	}
}

var todo = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

func todoComment(p *source, report func(int, string)) {
	for _, r := range p.remarks {
		if word := todo.FindString(r.text); word != "" {
			report(r.line, "an open "+word+"; finish it or file it")
		}
	}
}

func problems(rule string) func(*source, func(int, string)) {
	return func(p *source, report func(int, string)) {
		for _, x := range p.problems {
			if x.rule == rule {
				report(x.line, x.message)
			}
		}
	}
}

// binding is a name an import statement makes.
type binding struct {
	name string
	line int
	from string
}

// unusedImport finds imported names that nothing in the file mentions.
func unusedImport(p *source, report func(int, string)) {
	used := usedNames(p)
	for _, s := range p.all {
		if s.inside("try") != nil { // an import that may fail is a probe
			continue
		}
		for _, b := range imported(s) {
			if !used[b.name] {
				report(b.line, fmt.Sprintf("%s is imported and never used", b.from))
			}
		}
	}
}

// imported returns the names an import statement binds.
func imported(s *stmt) []binding {
	var names []token
	switch {
	case s.toks[0].is("import"):
		names = s.toks[1:]
	case s.toks[0].is("from") && !s.at(1).is("__future__"):
		i := slices.IndexFunc(s.toks, func(t token) bool { return t.is("import") })
		if i < 0 {
			return nil
		}
		names = s.toks[i+1:]
	default:
		return nil
	}
	var out []binding
	for part := range splitAt(names, ",") {
		if b, ok := bound(part); ok {
			out = append(out, b)
		}
	}
	return out
}

// bound is the name one part of an import binds: a of "a.b", c of "a as c".
// "a as a" says that the name is for others and is not counted.
func bound(part []token) (binding, bool) {
	part = slices.DeleteFunc(slices.Clone(part), func(t token) bool { return t.is("(") || t.is(")") })
	if len(part) == 0 || part[0].kind != name {
		return binding{}, false
	}
	var full strings.Builder
	for i, t := range part {
		if t.is("as") && i+1 < len(part) {
			alias := part[i+1]
			return binding{alias.text, part[0].line, full.String() + " as " + alias.text}, alias.text != full.String()
		}
		full.WriteString(t.text)
	}
	return binding{part[0].text, part[0].line, full.String()}, true
}

// splitAt yields the runs of tokens between separators.
func splitAt(toks []token, separator string) func(yield func([]token) bool) {
	return func(yield func([]token) bool) {
		from := 0
		for i := range len(toks) + 1 {
			if i < len(toks) && !toks[i].is(separator) {
				continue
			}
			if !yield(toks[from:i]) {
				return
			}
			from = i + 1
		}
	}
}

// usedNames are the names that code outside of import statements mentions:
// also in f-strings, in annotations written as strings and in __all__.
func usedNames(p *source) map[string]bool {
	used := make(map[string]bool)
	mark := func(w string) { used[w] = true }
	for _, s := range p.all {
		if s.toks[0].is("import") || s.toks[0].is("from") {
			continue
		}
		exported := s.toks[0].is("__all__")
		for i, t := range s.toks {
			before := s.at(i - 1)
			switch t.kind {
			case name:
				keyword := s.at(i+1).is("=") && (before.is("(") || before.is(","))
				if !before.is(".") && (!keyword || i == 0) {
					used[t.text] = true
				}
			case text:
				for _, f := range t.fields {
					words(f, mark)
				}
				if exported || before.is(":") || before.is("->") || before.is("[") {
					words(unquote(t.text), mark)
				}
			}
		}
	}
	return used
}

func wildcardImport(p *source, report func(int, string)) {
	for _, s := range p.all {
		if n := len(s.toks); s.toks[0].is("from") && s.toks[n-1].is("*") && s.at(n-2).is("import") {
			report(s.line(), "import * hides where names come from and may replace your own; name what you need")
		}
	}
}

// redefined finds a second def of the same name in one block, where nothing
// between mentions the first: it can never be reached. Decorated ones
// (overload, setter) are meant.
func redefined(p *source, report func(int, string)) {
	mentions := mentionLines(p)
	blocks := [][]*stmt{p.top}
	for _, s := range p.all {
		if k := s.keyword(); k == "def" || k == "class" {
			blocks = append(blocks, s.body)
		}
	}
	for _, block := range blocks {
		earlier := make(map[string]int)
		for i, s := range block {
			fn, _ := s.defined()
			if fn == "" || i > 0 && block[i-1].toks[0].is("@") {
				continue
			}
			first, again := earlier[fn]
			earlier[fn] = s.line()
			next, _ := slices.BinarySearch(mentions[fn], first+1)
			if again && (next == len(mentions[fn]) || mentions[fn][next] >= s.line()) {
				report(s.line(), fmt.Sprintf("%s is defined again; the one of line %d can no longer be reached", fn, first))
			}
		}
	}
}

// mentionLines holds, for each name, the lines that mention it other than by
// defining it, in order.
func mentionLines(p *source) map[string][]int {
	lines := make(map[string][]int)
	for _, s := range p.all {
		_, def := s.defined()
		for i, t := range s.toks {
			if t.kind == name && !s.at(i-1).is(".") && (def == 0 || i != def) {
				lines[t.text] = append(lines[t.text], t.line)
			}
		}
	}
	return lines
}

// builtins that are worth keeping.
var builtins = strings.Fields(`all any bool bytes callable chr compile dict dir enumerate eval exec filter float
	format frozenset getattr hash hex id input int isinstance iter len list map max min next object open ord pow
	print property range repr reversed round set setattr sorted str sum super tuple type vars zip`)

func shadowedBuiltin(p *source, report func(int, string)) {
	say := func(t token) {
		if t.kind == name && slices.Contains(builtins, t.text) {
			report(t.line, fmt.Sprintf("%s is a builtin; below this line it means something else", t.text))
		}
	}
	for _, s := range p.all {
		inClass := s.parent != nil && s.parent.keyword() == "class"
		fn, at := s.defined()
		switch {
		case fn != "" && !inClass:
			say(s.toks[at])
		case fn == "" && !inClass:
			for _, i := range s.assigned() {
				say(s.toks[i])
			}
		}
		if s.keyword() == "def" && fn != "" {
			sayParams(s.args(at+1), say)
		}
		for i, t := range s.toks {
			if t.is("as") && s.keyword() != "case" {
				say(s.at(i + 1))
			}
		}
	}
}

// sayParams calls say for each parameter's name.
func sayParams(params []token, say func(token)) {
	depth, start := 0, true
	for _, t := range params {
		switch {
		case t.is("("), t.is("["), t.is("{"):
			depth++
		case t.is(")"), t.is("]"), t.is("}"):
			depth--
		case depth == 0 && t.is(","):
			start = true
		case start && t.kind == name:
			say(t)
			start = false
		}
	}
}
