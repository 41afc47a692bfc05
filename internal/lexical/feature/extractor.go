// Package feature turns texts into features, the inputs of models and rankings. A feature is a
// hash, and a Table numbers the features of a corpus.
//
// extractor.go collects the features of a text: words, stems, pairs of stems and character
// n-grams, and the vector of its words. terms.go does it word by word for rankings. hash.go
// defines the hashes, table.go the table.
package feature

import (
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// Lengths of the character n-grams of a word, its borders included.
const (
	minNgram = 3
	maxNgram = 4
)

// Extractor collects the features of a text as hashes: words, stems and
// pairs of adjacent stems in one list, character n-grams inside words in the
// other. The two lists are weighed separately, because a text has about five
// times as many n-grams as words and they carry the same information.
//
// A third feature of a small set is the sum of the vectors of the words.
//
// For Chinese and Japanese, which package token splits into pairs of
// characters, the features are runs of one to three characters.
type Extractor struct {
	Words  []uint32 // words, stems and pairs of stems
	Ngrams []uint32

	// IsDeclared reports whether a registry declares a numeral, by the hash of its word. It is
	// nil if each numeral is a word of its own.
	IsDeclared func(hash uint32) bool

	HasVectors bool // words have vectors, whose sum is Vector
	Vector     wordvectors.Sum
	repeats    map[uint32]int // of words with vectors, by their hashes

	previousStem uint32 // hash of the previous stem
	padded, word []byte
}

// Reset starts a text.
func (f *Extractor) Reset() {
	f.Words, f.Ngrams = f.Words[:0], f.Ngrams[:0]
	f.Vector = wordvectors.Sum{}
	clear(f.repeats)
	f.previousStem = 0 // start of the text
}

// AddWord adds the next folded word.
func (f *Extractor) AddWord(w []byte) {
	if f.IsDeclared != nil && IsNumeral(w) {
		f.addNumeral(w)
		return
	}
	f.Words = append(f.Words, OfWord(w))
	f.addNgrams(w)
}

// addNumeral adds a numeral: one that is declared as itself, any other one as anyNumeral.
func (f *Extractor) addNumeral(w []byte) {
	h := OfWord(w)
	if !f.IsDeclared(h) {
		h = OfWord([]byte(anyNumeral))
	}
	f.Words = append(f.Words, h)
	f.addNgrams([]byte(anyNumeral))
}

// AddStem adds the stem of the last word, and its pair with the previous stem. The stem of
// a numeral is anyNumeral.
func (f *Extractor) AddStem(s []byte) {
	if f.IsDeclared != nil && IsNumeral(s) {
		s = []byte(anyNumeral)
	}
	h := hashBytes(seedStem, s)
	f.Words = append(f.Words, mixHash(h))
	if f.previousStem != 0 {
		f.Words = append(f.Words, mixHash((f.previousStem^seedPair)*hashPrime+h))
	}
	f.previousStem = h
}

// maxVectorRepeats bounds how often the vector of one word counts in a text, so that words
// that a long text repeats do not outweigh all others.
const maxVectorRepeats = 4

// AddVector adds the vector of a folded word with the given stem, or half of it if it is that
// of translations, which are less certain.
func (f *Extractor) AddVector(word, stem []byte) {
	if !f.HasVectors {
		return
	}
	v, translated, ok := synonyms.Vector(word, stem)
	if !ok {
		return
	}
	if translated {
		v.Halve()
	}
	h := hashBytes(seedWord, word)
	if f.repeats == nil {
		f.repeats = map[uint32]int{}
	}
	if f.repeats[h]++; f.repeats[h] <= maxVectorRepeats {
		f.Vector.Add(&v)
	}
}

// AddReplacement adds the word that the last one counts as. It adds no n-grams: those of
// a misspelt word are nearly the same, and those of a synonym would only repeat it.
func (f *Extractor) AddReplacement(w []byte) {
	f.Words = append(f.Words, OfWord(w))
}

// AddReplacementStem adds the stem of the word that the last one counts as.
func (f *Extractor) AddReplacementStem(s []byte) {
	f.Words = append(f.Words, OfStem(s))
}

// addNgrams adds the n-grams of a word, or the characters of a pair of
// ideographs.
func (f *Extractor) addNgrams(w []byte) {
	shortest, longest := minNgram, maxNgram
	f.padded = append(append(append(f.padded[:0], ' '), w...), ' ')
	p := f.padded
	if r, _ := utf8.DecodeRune(w); token.IsUnspaced(r) {
		p, shortest, longest = w, 1, 1
	}
	for from := range p {
		if !utf8.RuneStart(p[from]) {
			continue
		}
		h, n := seedGram, 0
		for to := from; to < len(p) && n < longest; to++ {
			h = (h ^ uint32(p[to])) * hashPrime
			if to+1 < len(p) && !utf8.RuneStart(p[to+1]) {
				continue
			}
			if n++; n >= shortest {
				f.Ngrams = append(f.Ngrams, mixHash(h))
			}
		}
	}
}

// Extract extracts the features of a whole text.
func (f *Extractor) Extract(w *token.Scanner, text string) {
	f.Reset()
	for w.Reset(text); w.Next(); {
		f.AddWord(w.Word)
		f.word = append(f.word[:0], w.Word...)
		stem := token.Stem(token.FoldNumber(f.word))
		f.AddStem(stem)
		f.AddVector(w.Word, stem)
	}
}

// anyNumeral stands for all numerals that are not declared: a request for truck 9 is like the
// example with truck 44.
const anyNumeral = "000"

// IsNumeral reports whether a folded word consists of digits or has at least three of
// them, like the number of an order, a flight or a container. Names such as b2b and k8s
// are none.
func IsNumeral(word []byte) bool {
	digits := 0
	for _, c := range word {
		if '0' <= c && c <= '9' {
			digits++
		}
	}
	return digits >= 3 || digits > 0 && digits == len(word)
}
