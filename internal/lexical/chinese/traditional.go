package chinese

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

// traditionalCharacters contains pairs of a traditional character and its simplified form. See
// LICENSE.md.
//
//go:embed traditional.txt
var traditionalCharacters string

// The block of Unicode that contains all of these characters.
const firstIdeograph, lastIdeograph = '\u4e00', '\u9fff'

// simplified contains the simplified form of each character of the block that is traditional.
var simplified = sync.OnceValue(func() *[lastIdeograph - firstIdeograph + 1]uint16 {
	table := new([lastIdeograph - firstIdeograph + 1]uint16)
	for pair := range strings.FieldsSeq(traditionalCharacters) {
		from, size := utf8.DecodeRuneInString(pair)
		to, _ := utf8.DecodeRuneInString(pair[size:])
		table[from-firstIdeograph] = uint16(to)
	}
	return table
})

// Simplify replaces traditional characters of the text by simplified ones. The length of the text,
// and all other characters, stay. A traditional character with several simplified forms gets
// its most frequent one.
func Simplify(text []byte) {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if to := SimplifyRune(r); to != r {
			utf8.EncodeRune(text[at:], to)
		}
		at += size
	}
}

// SimplifyRune is Simplify for one character.
func SimplifyRune(r rune) rune {
	if r < firstIdeograph || r > lastIdeograph {
		return r
	}
	if to := simplified()[r-firstIdeograph]; to != 0 {
		return rune(to)
	}
	return r
}
