package token

import (
	"bytes"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
)

// FoldNumber removes the plural, so that queries equals query, funções função
// and códigos código. It also removes a final e and replaces y, which related
// languages spell differently. It works in place on a folded word. The result
// is only compared, so its spelling does not matter: code becomes cod.
func FoldNumber(b []byte) []byte {
	if len(b) < 4 || string(b) == "news" {
		return b
	}
	switch {
	case len(b) > 4 && hasSuffix(b, "sis"): // analysis, analyses, análisis
		b = b[:len(b)-2]
	case hasSuffix(b, "s") && !hasSuffix(b, "ss"):
		b = b[:len(b)-1]
	}
	if len(b) >= 4 && hasSuffix(b, "e") {
		b = b[:len(b)-1]
	}
	if len(b) >= 4 && hasSuffix(b, "ao") { // função, funções
		b = append(b[:len(b)-2], 'o')
	}
	if len(b) >= 4 {
		for i := 1; i < len(b); i++ {
			if b[i] == 'y' {
				b[i] = 'i'
			}
		}
	}
	return b
}

// Stem removes the most common verb endings and the Romance gender from a
// word without its plural: reviewing, reviewed and review; analisar, analisa,
// analyze and analysis; modelo and model. Short words are unchanged, because
// they collide by accident.
func Stem(b []byte) []byte {
	switch n := len(b); {
	case n >= 6 && hasSuffix(b, "ing") && hasVowel(b[:n-3]):
		b = undoubleConsonant(b[:n-3])
	case n >= 5 && hasSuffix(b, "ed") && b[n-3] != 'e' && hasVowel(b[:n-2]):
		b = undoubleConsonant(b[:n-2])
	case n >= 7 && hasSuffix(b, "ar"):
		b = b[:n-2]
	case n >= 6 && (hasSuffix(b, "a") || hasSuffix(b, "o")):
		b = b[:n-1]
	}
	if len(b) >= 5 && hasSuffix(b, "iz") {
		b[len(b)-1] = 's'
	}
	return b
}

// IsGerund reports whether a word without its plural has another stem only because of its
// ending -ing.
func IsGerund(word, stem []byte) bool { return hasSuffix(word, "ing") && len(stem) < len(word) }

func hasSuffix(b []byte, suffix string) bool {
	return len(b) >= len(suffix) && string(b[len(b)-len(suffix):]) == suffix
}

func hasVowel(b []byte) bool { return bytes.ContainsAny(b, "aeiou") }

// undoubleConsonant turns plann (of planning) into plan; bill, pass and buzz
// stay.
func undoubleConsonant(b []byte) []byte {
	n := len(b)
	if n < 4 || b[n-1] != b[n-2] || b[n-1] == 'l' || b[n-1] == 's' || b[n-1] == 'z' {
		return b
	}
	return b[:n-1]
}

// StopWords returns the set of stop words.
func StopWords() map[string]bool {
	stops := map[string]bool{}
	for w := range strings.FieldsSeq(lexicon.StopWords) {
		stops[w] = true
	}
	return stops
}

// StemOf returns the stem of a folded word.
func StemOf(word string) string { return string(Stem(FoldNumber([]byte(word)))) }
