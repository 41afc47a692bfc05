package pycheck

import (
	"fmt"
	"slices"
	"strings"
)

// missingDocstring asks for a docstring of what others may call: functions and
// classes at module level and methods of such classes.
func missingDocstring(p *source, report func(int, string)) {
	for _, s := range p.all {
		fn, _ := s.defined()
		if fn == "" || strings.HasPrefix(fn, "_") || strings.HasPrefix(fn, "test") || len(s.body) == 0 {
			continue
		}
		if s.inside("def") != nil || s.body[0].isDocstring() || len(s.body) == 1 && doesNothing(s.body) {
			continue
		}
		if c := s.inside("class"); c != nil {
			if outer, _ := c.defined(); strings.HasPrefix(outer, "_") {
				continue
			}
		}
		if p.decorated(s, "overload", "setter", "deleter") {
			continue
		}
		report(s.line(), fmt.Sprintf("%s is public and has no docstring", fn))
	}
}

// decorated reports whether one of the words stands in a decorator of s.
func (p *source) decorated(s *stmt, words ...string) bool {
	block := p.siblings(s)
	at, ok := slices.BinarySearchFunc(block, s, func(a, b *stmt) int { return a.line() - b.line() })
	if !ok {
		return false
	}
	for i := at - 1; i >= 0 && block[i].toks[0].is("@"); i-- {
		for _, t := range block[i].toks {
			if t.kind == name && slices.Contains(words, t.text) {
				return true
			}
		}
	}
	return false
}

// emptyFString finds f"…" without a placeholder. Neighbours that are joined
// into one string count together.
func emptyFString(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i := 0; i < len(s.toks); i++ {
			formatted, fields, line := false, 0, s.toks[i].line
			for ; i < len(s.toks) && s.toks[i].kind == text; i++ {
				formatted = formatted || isFormatted(s.toks[i])
				fields += len(s.toks[i].fields)
			}
			if formatted && fields == 0 {
				report(line, "the f-string has no placeholder; drop the f, or the braces were forgotten")
			}
		}
	}
}

// printCall finds print in library code: not under if __name__ == "__main__"
// and not in main.
func printCall(p *source, report func(int, string)) {
	for _, s := range p.all {
		for i, t := range s.toks {
			if t.text == "print" && s.builtin(i) && !s.inMain() {
				report(t.line, "print for debugging; use logging, so that it can be turned off")
			}
		}
	}
}

func (s *stmt) inMain() bool {
	for b := s.parent; b != nil; b = b.parent {
		fn, _ := b.defined()
		if fn == "main" || b.keyword() == "if" && b.at(1).is("__name__") {
			return true
		}
	}
	return false
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
