package synonyms

import (
	"bytes"
	"slices"

	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// isInflection reports whether a word is an inflection of a listed one with the same stem, or
// the same word of a related language: "reported" of "report", "música" of "music", "analisa" of
// "analisar". A word without an ending does not follow from one with an ending: "estación"
// (station) from "estacionar" (to park), "carpet" from "carpeta" (folder). The exception is an
// English verb with nearly the vector of the listed form: "recycle" and "recycling", but not
// "train" and "training".
func isInflection(word, listed, stem []byte) bool {
	var buffers [2][24]byte // longer words are allocated
	w, l := token.FoldNumber(append(buffers[0][:0], word...)), token.FoldNumber(append(buffers[1][:0], listed...))
	isNoun := bytes.HasSuffix(word, []byte("ao")) || bytes.HasSuffix(word, []byte("oes")) // and not a verb in -o
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
	case bytes.HasSuffix(l, []byte("ar")) && len(l) == len(stem)+len("ar"):
		return len(w) > len(stem) || bytes.HasSuffix(word, []byte("e")) || bytes.HasSuffix(word, []byte("es")) && !bytes.HasSuffix(word, []byte("iones"))
	case len(l) > len(stem):
		return slices.ContainsFunc(genderEndings, func(ending string) bool {
			return bytes.HasSuffix(w[:len(w)-1], []byte(ending)) && bytes.HasSuffix(l[:len(l)-1], []byte(ending))
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
	return len(w) > len(stem) && (bytes.HasSuffix(w, []byte("ing")) || bytes.HasSuffix(w, []byte("ed")))
}

// isDoubled reports whether an English form has a consonant before its ending that its stem
// has not: planned.
func isDoubled(form, stem []byte) bool {
	if bytes.HasSuffix(form, []byte("ing")) {
		return len(form) > len(stem)+len("ing")
	}
	return len(form) > len(stem)+len("ed")
}

// isFormOf reports whether a form in -ing or -ed, with or without a doubled consonant, can be of
// a verb: "planning" of "plan" and "routing" of "route", but not "sitting" of "site" or "caring"
// of "car".
func isFormOf(doubled bool, verb []byte) bool {
	if doubled {
		return !bytes.HasSuffix(verb, []byte("e"))
	}
	n := len(verb)
	mustDouble := n >= 3 && n <= 4 && bytes.IndexAny(verb, "aeiou") == n-2 && !bytes.ContainsAny(verb[n-1:], "aeiouwxy")
	return !mustDouble
}

// sameVerbSimilarity is the cosine of their vectors from which two English words with one stem are
// forms of one verb.
const sameVerbSimilarity = 0.5

// areSimilar reports whether two English words have nearly the same vector.
func areSimilar(a, b []byte) bool {
	v, ok := wordvectors.Lookup(a)
	u, known := wordvectors.Lookup(b)
	return ok && known && wordvectors.Cosine(&v, &u) >= sameVerbSimilarity
}
