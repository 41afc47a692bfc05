package lexical

import "unicode/utf8"

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

// addSpelling adds the word that the last one misspells. Its n-grams are nearly
// the same as those of the last one.
func (f *featureExtractor) addSpelling(w []byte) {
	f.words = append(f.words, mixHash(hashBytes(seedWord, w)))
}

// addSpellingStem adds the stem of the word that the last one misspells.
func (f *featureExtractor) addSpellingStem(s []byte) {
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
