package docsearch

import (
	"slices"
	"strings"
	"unicode"
)

// words cuts text into the words it is searched by: runs of letters and digits,
// in lower case, without the endings of plural and verb, and without words that
// every question holds. confidence_threshold is two words.
func words(text string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if s := stem(w); !slices.Contains(noise, w) && !slices.Contains(noise, s) {
			out = append(out, s)
		}
	}
	return out
}

// noise are words that say nothing about what is looked for; the last ones only
// say where to look.
var noise = strings.Fields(`a about an and any are as at be by can do does explain find for from get give has have
	how i if in into is it its look may me my need of on one or our please say says search show tell that the their
	there they this to up us was we what when where which who why will with would you your
	doc docs document documentation documents manual`)

// stem is deliberately light: "route", "routes", "routed" and "routing" meet,
// and nothing is cut below three letters.
func stem(w string) string {
	const least = 3
	trim := func(suffix string) bool {
		rest, ok := strings.CutSuffix(w, suffix)
		if !ok || len(rest) < least {
			return false
		}
		w = rest
		return true
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > least+1:
		w = strings.TrimSuffix(w, "ies") + "y"
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"):
	case len(w) > least:
		w = strings.TrimSuffix(w, "s")
	}
	if !trim("ing") && !trim("ed") {
		trim("e")
	}
	return w
}
