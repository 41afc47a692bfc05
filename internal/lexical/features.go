package lexical

import "unicode/utf8"

// The lengths of the character n-grams a word is cut into, its borders included.
const (
	shortestGram = 3
	longestGram  = 4
)

// features collects what a text is made of, as hashes: its words, their stems and
// the pairs of neighbours in one list, the character n-grams inside the words in
// the other. The two are weighed apart: a text has five times as many n-grams as
// words, and they say the same thing five times.
//
// Of Chinese and Japanese, which the reader cuts into pairs of characters, these
// are the runs of one to three characters.
type features struct {
	words []uint32
	grams []uint32

	previous uint32 // hash of the stem before
	padded   []byte
}

func (f *features) reset() {
	f.words, f.grams = f.words[:0], f.grams[:0]
	f.previous = 0 // the beginning of the text
}

// word takes the next word, folded.
func (f *features) word(w []byte) {
	h := hashOf(seedWord, w)
	f.words = append(f.words, finish(h))
	f.cut(w)
}

// stem takes the stem of the word just taken, and its pair with the stem before.
func (f *features) stem(s []byte) {
	h := hashOf(seedStem, s)
	f.words = append(f.words, finish(h))
	if f.previous != 0 {
		f.words = append(f.words, finish((f.previous^seedPair)*hashPrime+h))
	}
	f.previous = h
}

// cut takes the n-grams of a word, or the characters of a pair of ideographs.
func (f *features) cut(w []byte) {
	shortest, longest := shortestGram, longestGram
	f.padded = append(append(append(f.padded[:0], ' '), w...), ' ')
	p := f.padded
	if r, _ := utf8.DecodeRune(w); unspaced(r) {
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
				f.grams = append(f.grams, finish(h))
			}
		}
	}
}

// read takes a whole text. (A reading takes word by word, because it also looks
// for other things.)
func (f *features) read(w *words, text string) {
	f.reset()
	for w.reset(text); w.next(); {
		f.word(w.word)
		f.stem(stem(singular(w.word)))
	}
}
