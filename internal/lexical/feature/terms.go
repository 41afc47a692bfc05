package feature

import "github.com/caprouter/caprouter/internal/lexical/token"

// Terms splits a text into terms: the stems and the n-grams of its words.
type Terms struct {
	Tokens     token.Scanner
	Stops      map[string]bool // stop words
	StopWeight float64         // share of a stop word

	features Extractor
	word     []byte
}

// ForEach calls use for the stem of every word of the text, and for the
// n-grams of the word. share is 1, or less if the word is a stop word.
func (t *Terms) ForEach(text string, use func(hash uint32, isWord bool, share float64)) {
	for t.Tokens.Reset(text); t.Tokens.Next(); {
		share := 1.0
		if t.Stops[string(t.Tokens.Word)] {
			share = t.StopWeight
		}
		t.features.Reset()
		t.features.addNgrams(t.Tokens.Word)
		t.word = append(t.word[:0], t.Tokens.Word...)
		use(OfStem(token.Stem(token.FoldNumber(t.word))), true, share)
		for _, hash := range t.features.Ngrams {
			use(hash, false, share)
		}
	}
}
