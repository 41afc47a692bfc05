package lexical

import "unicode/utf8"

// The lengths of the character n-grams a word is cut into, its borders included.
const (
	minNgram = 3
	maxNgram = 4
)

// featureExtractor collects what a text is made of, as hashes: its words, their stems and
// the pairs of neighbours in one list, the character n-grams inside the words in
// the other. The two are weighed apart: a text has five times as many n-grams as
// words, and they say the same thing five times.
//
// Of Chinese and Japanese, which the reader cuts into pairs of characters, these
// are the runs of one to three characters.
type featureExtractor struct {
	words []uint32
	grams []uint32

	previousStem uint32 // hash of the stem before
	padded       []byte
}

func (f *featureExtractor) reset() {
	f.words, f.grams = f.words[:0], f.grams[:0]
	f.previousStem = 0 // the beginning of the text
}

// addWord takes the next word, folded.
func (f *featureExtractor) addWord(w []byte) {
	h := hashBytes(seedWord, w)
	f.words = append(f.words, mixHash(h))
	f.addNgrams(w)
}

// addStem takes the stem of the word just taken, and its pair with the stem before.
func (f *featureExtractor) addStem(s []byte) {
	h := hashBytes(seedStem, s)
	f.words = append(f.words, mixHash(h))
	if f.previousStem != 0 {
		f.words = append(f.words, mixHash((f.previousStem^seedPair)*hashPrime+h))
	}
	f.previousStem = h
}

// addNgrams takes the n-grams of a word, or the characters of a pair of ideographs.
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

// extractText takes a whole text. (A reading takes word by word, because it also looks
// for other things.)
func (f *featureExtractor) extractText(w *tokenizer, text string) {
	f.reset()
	for w.reset(text); w.next(); {
		f.addWord(w.word)
		f.addStem(stemWord(foldNumber(w.word)))
	}
}
