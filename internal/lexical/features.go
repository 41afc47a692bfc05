package lexical

import (
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
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
// For Chinese and Japanese, which the tokenizer splits into pairs of
// characters, the features are runs of one to three characters.
type featureExtractor struct {
	words []uint32
	grams []uint32

	previousStem uint32 // hash of the previous stem
	padded       []byte
}

func (f *featureExtractor) reset() {
	f.words, f.grams = f.words[:0], f.grams[:0]
	f.previousStem = 0 // start of the text
}

// addWord adds the next folded word.
func (f *featureExtractor) addWord(w []byte) {
	h := hashBytes(seedWord, w)
	f.words = append(f.words, mixHash(h))
	f.addNgrams(w)
}

// addStem adds the stem of the last word, and its pair with the previous stem.
func (f *featureExtractor) addStem(s []byte) {
	h := hashBytes(seedStem, s)
	f.words = append(f.words, mixHash(h))
	if f.previousStem != 0 {
		f.words = append(f.words, mixHash((f.previousStem^seedPair)*hashPrime+h))
	}
	f.previousStem = h
}

// addReplacement adds the word that the last one counts as. It adds no n-grams: those of
// a misspelt word are nearly the same, and those of a synonym would only repeat it.
func (f *featureExtractor) addReplacement(w []byte) {
	f.words = append(f.words, mixHash(hashBytes(seedWord, w)))
}

// addReplacementStem adds the stem of the word that the last one counts as.
func (f *featureExtractor) addReplacementStem(s []byte) {
	f.words = append(f.words, mixHash(hashBytes(seedStem, s)))
}

// addNgrams adds the n-grams of a word, or the characters of a pair of
// ideographs.
func (f *featureExtractor) addNgrams(w []byte) {
	shortest, longest := minNgram, maxNgram
	f.padded = append(append(append(f.padded[:0], ' '), w...), ' ')
	p := f.padded
	if r, _ := utf8.DecodeRune(w); isUnspaced(r) {
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
func (f *featureExtractor) extractText(w *tokenizer, text string) {
	f.reset()
	for w.reset(text); w.next(); {
		f.addWord(w.word)
		f.addStem(stemWord(foldNumber(w.word)))
	}
}

// commonHashes are the feature hashes of lexicon.Common and their stems.
type commonHashes map[uint32]struct{}

func (c commonHashes) contains(hash uint32) bool {
	_, ok := c[hash]
	return ok
}

// containsStem reports whether a stem is that of a common word.
func (c commonHashes) containsStem(stem []byte) bool {
	return c.contains(mixHash(hashBytes(seedStem, stem)))
}

func newCommonHashes() commonHashes {
	common := commonHashes{}
	for w := range strings.FieldsSeq(lexicon.Common) {
		b := []byte(w)
		common[mixHash(hashBytes(seedWord, b))] = struct{}{}
		common[mixHash(hashBytes(seedStem, stemWord(foldNumber(b))))] = struct{}{}
	}
	return common
}
