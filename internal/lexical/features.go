package lexical

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// Lengths of the character n-grams of a word, its borders included.
const (
	minNgram = 3
	maxNgram = 4
)

// featureExtractor collects the features of a text as hashes: words, stems and
// pairs of adjacent stems in one list, character n-grams inside words in the
// other. The two lists are weighed separately, because a text has about five
// times as many n-grams as words and they carry the same information.
//
// A third feature of a small set is the sum of the vectors of the words.
//
// For Chinese and Japanese, which package token splits into pairs of
// characters, the features are runs of one to three characters.
type featureExtractor struct {
	words []uint32
	grams []uint32

	// isDeclared reports whether a numeral is declared, by the hash of its word. In training
	// see declaredNumerals; afterwards these are the numerals that the model contains. It is
	// nil if each numeral is a word of its own: so many examples, as for the vectors, show by
	// themselves what it means.
	isDeclared func(hash uint32) bool

	vectors bool // words have vectors, whose sum is vector
	vector  wordvectors.Sum
	repeats map[uint32]int // of words with vectors, by their hashes

	previousStem uint32 // hash of the previous stem
	padded, word []byte
}

func (f *featureExtractor) reset() {
	f.words, f.grams = f.words[:0], f.grams[:0]
	f.vector = wordvectors.Sum{}
	clear(f.repeats)
	f.previousStem = 0 // start of the text
}

// addWord adds the next folded word.
func (f *featureExtractor) addWord(w []byte) {
	if f.isDeclared != nil && isNumeral(w) {
		f.addNumeral(w)
		return
	}
	f.words = append(f.words, wordHash(w))
	f.addNgrams(w)
}

// addNumeral adds a numeral: one that is declared as itself, any other one as anyNumeral.
func (f *featureExtractor) addNumeral(w []byte) {
	h := wordHash(w)
	if !f.isDeclared(h) {
		h = wordHash([]byte(anyNumeral))
	}
	f.words = append(f.words, h)
	f.addNgrams([]byte(anyNumeral))
}

// addStem adds the stem of the last word, and its pair with the previous stem. The stem of
// a numeral is anyNumeral.
func (f *featureExtractor) addStem(s []byte) {
	if f.isDeclared != nil && isNumeral(s) {
		s = []byte(anyNumeral)
	}
	h := hashBytes(seedStem, s)
	f.words = append(f.words, mixHash(h))
	if f.previousStem != 0 {
		f.words = append(f.words, mixHash((f.previousStem^seedPair)*hashPrime+h))
	}
	f.previousStem = h
}

// maxVectorRepeats bounds how often the vector of one word counts in a text, so that words
// that a long text repeats do not outweigh all others.
const maxVectorRepeats = 4

// addVector adds the vector of a folded word with the given stem, or half of it if it is that
// of translations, which are less certain.
func (f *featureExtractor) addVector(word, stem []byte) {
	if !f.vectors {
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
		f.vector.Add(&v)
	}
}

// addReplacement adds the word that the last one counts as. It adds no n-grams: those of
// a misspelt word are nearly the same, and those of a synonym would only repeat it.
func (f *featureExtractor) addReplacement(w []byte) {
	f.words = append(f.words, wordHash(w))
}

// addReplacementStem adds the stem of the word that the last one counts as.
func (f *featureExtractor) addReplacementStem(s []byte) {
	f.words = append(f.words, stemHash(s))
}

// addNgrams adds the n-grams of a word, or the characters of a pair of
// ideographs.
func (f *featureExtractor) addNgrams(w []byte) {
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
				f.grams = append(f.grams, mixHash(h))
			}
		}
	}
}

// extractText extracts the features of a whole text. (textAnalysis adds word by
// word, because it does more with each word.)
func (f *featureExtractor) extractText(w *token.Scanner, text string) {
	f.reset()
	for w.Reset(text); w.Next(); {
		f.addWord(w.Word)
		f.word = append(f.word[:0], w.Word...)
		stem := token.Stem(token.FoldNumber(f.word))
		f.addStem(stem)
		f.addVector(w.Word, stem)
	}
}

// anyNumeral stands for all numerals that are not declared: a request for truck 9 is like the
// example with truck 44.
const anyNumeral = "000"

// isNumeral reports whether a folded word consists of digits or has at least three of
// them, like the number of an order, a flight or a container. Names such as b2b and k8s
// are none.
func isNumeral(word []byte) bool {
	digits := 0
	for _, c := range word {
		if '0' <= c && c <= '9' {
			digits++
		}
	}
	return digits >= 3 || digits > 0 && digits == len(word)
}

// wordHash returns the feature of a folded word.
func wordHash(word []byte) uint32 { return mixHash(hashBytes(seedWord, word)) }

// stemHash returns the feature of a stem.
func stemHash(stem []byte) uint32 { return mixHash(hashBytes(seedStem, stem)) }

// commonHashes are the feature hashes of lexicon.Common and their stems.
type commonHashes map[uint32]struct{}

func (c commonHashes) contains(hash uint32) bool {
	_, ok := c[hash]
	return ok
}

// containsStem reports whether a stem is that of a common word.
func (c commonHashes) containsStem(stem []byte) bool {
	return c.contains(stemHash(stem))
}

func newCommonHashes() commonHashes {
	common := commonHashes{}
	for w := range strings.FieldsSeq(lexicon.Common) {
		b := []byte(w)
		common[wordHash(b)] = struct{}{}
		common[stemHash(token.Stem(token.FoldNumber(b)))] = struct{}{}
	}
	return common
}

// A feature is identified by a 32-bit hash of its text and kind. Among 100,000
// features about one pair collides, which costs the precision of a weight and
// not a wrong answer. The seeds keep the kinds apart.
const (
	seedWord uint32 = 0x811c9dc5
	seedPair uint32 = 0x9e3779b1
	seedStem uint32 = 0x7feb352d
	seedGram uint32 = 0x846ca68b
	seedText uint32 = 0x27d4eb2f

	hashPrime uint32 = 0x01000193 // FNV-1a
)

// hashBytes continues an FNV-1a hash with the bytes.
func hashBytes(h uint32, b []byte) uint32 {
	for _, c := range b {
		h = (h ^ uint32(c)) * hashPrime
	}
	return h
}

// mixHash spreads an FNV hash over all bits (the finalizer of MurmurHash3),
// because featureTable indexes by the low bits.
func mixHash(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// featureTable maps the hash of a feature to its number. It uses open
// addressing with linear probing, so that a lookup touches one cache line and
// no strings are stored.
type featureTable struct {
	slots []tableSlot
	mask  uint32
	size  int
}

type tableSlot struct {
	hash   uint32
	number uint32 // + 1; 0 is an empty slot
}

// newFeatureTable returns a table that holds n features without growing.
func newFeatureTable(n int) featureTable {
	size := 1 << bits.Len(uint(max(n, 4)*3/2))
	return featureTable{slots: make([]tableSlot, size), mask: uint32(size - 1)}
}

// lookup returns the feature's number, or -1.
func (t *featureTable) lookup(hash uint32) int32 {
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := t.slots[at]
		if s.number == 0 {
			return -1
		}
		if s.hash == hash {
			return int32(s.number) - 1
		}
	}
}

// contains reports whether there is a feature with the hash.
func (t *featureTable) contains(hash uint32) bool { return t.lookup(hash) >= 0 }

// insert returns the feature's number, the next free one if the feature is new.
func (t *featureTable) insert(hash uint32) int32 {
	if 4*t.size >= 3*len(t.slots) {
		t.growSlots()
	}
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		s := &t.slots[at]
		if s.number == 0 {
			t.size++
			*s = tableSlot{hash: hash, number: uint32(t.size)}
			return int32(t.size) - 1
		}
		if s.hash == hash {
			return int32(s.number) - 1
		}
	}
}

// shrinkToFit returns a copy of the smallest size that is still fast to search.
func (t *featureTable) shrinkToFit() featureTable {
	size := 8
	for 5*size < 6*t.size {
		size *= 2
	}
	f := featureTable{slots: make([]tableSlot, size), mask: uint32(size - 1)}
	for _, s := range t.slots {
		if s.number != 0 {
			f.putSlot(s)
		}
	}
	return f
}

func (t *featureTable) growSlots() {
	old := t.slots
	*t = newFeatureTable(len(old))
	for _, s := range old {
		if s.number != 0 {
			t.putSlot(s)
		}
	}
}

func (t *featureTable) putSlot(s tableSlot) {
	at := s.hash & t.mask
	for t.slots[at].number != 0 {
		at = (at + 1) & t.mask
	}
	t.slots[at] = s
	t.size++
}
