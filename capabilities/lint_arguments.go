package capabilities

import (
	"maps"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// findASCIIMatches finds arguments that are cut out of a text by a pattern whose letters are
// those of ASCII: a word such as "Málaga" has no match, so that the argument silently has its
// default, and of "Bogotá" the value is "Bogot".
func (l *linter) findASCIIMatches() {
	for _, a := range l.Agents {
		for _, name := range slices.Sorted(maps.Keys(a.Endpoint.Arguments)) {
			if argument := a.Endpoint.Arguments[name]; readsText(argument.From) && matchesASCIIWords(argument.Match) {
				l.report([]string{a.ID}, `the match of argument %s of %s matches ASCII letters only, so that "Málaga" has no match, or only a part of it: `+
					`use [\p{L}\p{M}-] in place of \w or [A-Za-z], or [0-9A-Za-z-] for an identifier`, name, a.ID)
			}
		}
	}
}

// readsText reports whether a source of arguments contains words of a caller.
func readsText(source string) bool {
	return source == contract.FromPrompt || source == contract.FromSubtask || strings.HasPrefix(source, contract.FromInputPrefix)
}

// matchesASCIIWords reports whether a part of the pattern matches all letters of ASCII and no
// others, as \w and [A-Za-z] do. Letters with digits and without an underscore are an
// identifier.
func matchesASCIIWords(pattern string) bool {
	expression, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && hasASCIIWordClass(expression)
}

func hasASCIIWordClass(e *syntax.Regexp) bool {
	if e.Op == syntax.OpCharClass {
		letters := includesRange(e.Rune, 'A', 'Z') && includesRange(e.Rune, 'a', 'z')
		identifier := includesRange(e.Rune, '0', '9') && !includesRange(e.Rune, '_', '_')
		return letters && !identifier && !includesRange(e.Rune, 'é', 'é')
	}
	return slices.ContainsFunc(e.Sub, hasASCIIWordClass)
}

// includesRange reports whether a class, which is a list of the first and the last rune of
// each of its ranges, contains all runes from first to last.
func includesRange(class []rune, first, last rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] <= first && last <= class[i+1] {
			return true
		}
	}
	return false
}
