package lexical

import (
	"bytes"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// foldNumber removes the plural, so that queries equals query, funções função
// and códigos código. It also removes a final e and replaces y, which related
// languages spell differently. It works in place on a folded word. The result
// is only compared, so its spelling does not matter: code becomes cod.
func foldNumber(b []byte) []byte {
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

// stemWord removes the most common verb endings and the Romance gender from a
// word without its plural: reviewing, reviewed and review; analisar, analisa,
// analyze and analysis; modelo and model. Short words are unchanged, because
// they collide by accident.
func stemWord(b []byte) []byte {
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

// isInflection reports whether a word is an inflection of a listed one with the same stem, or
// the same word of a related language: "reported" of "report", "música" of "music", "analisa" of
// "analisar". A word without an ending does not follow from one with an ending: "estación"
// (station) from "estacionar" (to park), "carpet" from "carpeta" (folder). The exception is an
// English verb with nearly the vector of the listed form: "recycle" and "recycling", but not
// "train" and "training".
func isInflection(word, listed, stem []byte) bool {
	var buffers [2][maxTypoLetters]byte
	w, l := foldNumber(append(buffers[0][:0], word...)), foldNumber(append(buffers[1][:0], listed...))
	isNoun := hasSuffix(word, "ao") || hasSuffix(word, "oes") // and not a verb in -o
	switch {
	case bytes.Equal(w, l):
		return len(stem) >= minUniqueStem || isPlural(word, listed) || isPlural(listed, word)
	case isEnglishForm(l, stem) && isEnglishForm(w, stem):
		return isDoubled(w, stem) == isDoubled(l, stem)
	case isEnglishForm(l, stem):
		return areSimilar(word, listed)
	case isEnglishForm(w, stem):
		return len(l) == len(stem) && isFormOf(isDoubled(w, stem), listed)
	case isNoun:
		return false
	case hasSuffix(l, "ar") && len(l) == len(stem)+len("ar"):
		return len(w) > len(stem) || hasSuffix(word, "e") || hasSuffix(word, "es") && !hasSuffix(word, "iones")
	case len(l) > len(stem):
		return slices.ContainsFunc(genderEndings, func(ending string) bool {
			return hasSuffix(w[:len(w)-1], ending) && hasSuffix(l[:len(l)-1], ending)
		})
	}
	return true
}

// minUniqueStem is the least length of a stem from which a final e does not distinguish words:
// "site" and "sit".
const minUniqueStem = 4

// genderEndings precede a final -o or -a that only distinguishes the gender: abierto, cerrada,
// enfermeira.
var genderEndings = []string{"ad", "id", "rt", "eir", "er", "ic", "ari", "atori", "os"}

// isPlural reports whether a word is the listed one with a plural ending.
func isPlural(word, listed []byte) bool {
	ending, ok := bytes.CutPrefix(word, listed)
	return ok && (len(ending) == 0 || string(ending) == "s" || string(ending) == "es")
}

// isEnglishForm reports whether the ending -ing or -ed was removed from a word for its stem.
func isEnglishForm(w, stem []byte) bool {
	return len(w) > len(stem) && (hasSuffix(w, "ing") || hasSuffix(w, "ed"))
}

// isDoubled reports whether an English form has a consonant before its ending that its stem
// has not: planned.
func isDoubled(form, stem []byte) bool {
	if hasSuffix(form, "ing") {
		return len(form) > len(stem)+len("ing")
	}
	return len(form) > len(stem)+len("ed")
}

// isFormOf reports whether a form in -ing or -ed, with or without a doubled consonant, can be of
// a verb: "planning" of "plan" and "routing" of "route", but not "sitting" of "site" or "caring"
// of "car".
func isFormOf(doubled bool, verb []byte) bool {
	if doubled {
		return !hasSuffix(verb, "e")
	}
	n := len(verb)
	mustDouble := n >= 3 && n <= 4 && bytes.IndexAny(verb, "aeiou") == n-2 && !bytes.ContainsAny(verb[n-1:], "aeiouwxy")
	return !mustDouble
}

// areSimilar reports whether two English words have nearly the same vector.
func areSimilar(a, b []byte) bool {
	v, ok := wordvectors.Lookup(a)
	u, known := wordvectors.Lookup(b)
	return ok && known && wordvectors.Cosine(&v, &u) >= minSimilarity
}

// isGerund reports whether a word without its plural has another stem only because of its
// ending -ing.
func isGerund(word, stem []byte) bool { return hasSuffix(word, "ing") && len(stem) < len(word) }

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

// newStopSet returns the set of stop words.
func newStopSet() map[string]bool {
	stops := map[string]bool{}
	for w := range strings.FieldsSeq(lexicon.StopWords) {
		stops[w] = true
	}
	return stops
}

func wordStem(word string) string { return string(stemWord(foldNumber([]byte(word)))) }
