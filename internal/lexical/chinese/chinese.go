// Package chinese simplifies the characters of Chinese text, and finds its words, which have no
// spaces between them. It knows the words of two characters of package lexicon, and its longer
// stop words and common words. A longer word with content is not taken whole, because a registry
// may contain only a part of it: 发票 is in 电子发票. The longest word counts, from left to right
// (forward maximum matching). The text between the known words is left to package token.
package chinese

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
)

// dictionary contains words of at least two characters.
type dictionary struct {
	words   map[string]bool
	longest map[rune]int // bytes of the longest word, by its first character
}

var known = sync.OnceValue(func() *dictionary {
	d := &dictionary{words: map[string]bool{}, longest: map[rune]int{}}
	for word := range strings.FieldsSeq(lexicon.Chinese) {
		if utf8.RuneCountInString(word) == 2 {
			d.add(word)
		}
	}
	for word := range strings.FieldsSeq(lexicon.StopWords + " " + lexicon.Common) {
		if utf8.RuneCountInString(word) > 1 {
			d.add(word)
		}
	}
	return d
})

// add adds a word, if it is Chinese.
func (d *dictionary) add(word string) {
	if first, _ := utf8.DecodeRuneInString(word); unicode.Is(unicode.Han, first) {
		d.words[word] = true
		d.longest[first] = max(d.longest[first], len(word))
	}
}

// IsWord reports whether the text is a known word.
func IsWord[T string | []byte](text T) bool { return known().words[string(text)] }

// FirstWord returns the length in bytes of the longest known word with which the text begins,
// or 0.
func FirstWord(text []byte) int {
	d := known()
	first, size := utf8.DecodeRune(text)
	for n := min(d.longest[first], len(text)); n > size; {
		if d.words[string(text[:n])] {
			return n
		}
		_, last := utf8.DecodeLastRune(text[:n])
		n -= last
	}
	return 0
}
