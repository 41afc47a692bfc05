package lexical

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/feature"
)

const (
	// minTypoLetters is the least length of a word of the registry that an
	// unknown word may be a misspelling of, and the unknown word may be one
	// letter shorter. Of shorter words, too many are one edit apart.
	minTypoLetters = 5
	// maxTypoLetters bounds the words that are indexed.
	maxTypoLetters = 24
)

// typoIndex finds the words of the registry that are one insertion, deletion,
// substitution or transposition of adjacent letters away from a word. It
// contains every word with any one letter deleted (symmetric deletion): two
// words one edit apart have such a form in common.
type typoIndex struct {
	table feature.Table // hash of a form → number
	first []int32       // by number: index of its first entry in forms
	forms []typoForm
}

type typoForm struct {
	word string // in the spelling that the form belongs to
	next int32  // entry of the same form, -1 if none
}

// newTypoIndex indexes folded words, and their singulars as spellings of their
// own. Words that occur more often are found first.
func newTypoIndex(count map[string]int) typoIndex {
	words, forms := make([]string, 0, len(count)), 0
	for w := range count {
		if n := utf8.RuneCountInString(w); n >= minTypoLetters && n <= maxTypoLetters {
			words = append(words, w)
			forms += n + 1
		}
	}
	slices.SortFunc(words, func(a, b string) int {
		if count[a] != count[b] {
			return count[a] - count[b] // the last one added is found first
		}
		return strings.Compare(b, a)
	})
	x := typoIndex{table: feature.NewTable(forms), forms: make([]typoForm, 0, forms), first: make([]int32, 0, forms)}
	for _, w := range words {
		x.addSpelling(w)
	}
	x.table = x.table.ShrinkToFit()
	return x
}

func (x *typoIndex) addSpelling(word string) {
	x.addForm(hashString(word, len(word), 0), word)
	for i, r := range word {
		x.addForm(hashString(word, i, utf8.RuneLen(r)), word)
	}
}

func (x *typoIndex) addForm(hash uint32, word string) {
	number := x.table.Insert(hash)
	next := int32(-1)
	if int(number) == len(x.first) {
		x.first = append(x.first, 0)
	} else if next = x.first[number]; x.forms[next].word == word {
		return // a double letter
	}
	x.first[number] = int32(len(x.forms))
	x.forms = append(x.forms, typoForm{word, next})
}

// Parameters of a 32-bit FNV-1a hash.
const (
	fnvOffset uint32 = 0x811c9dc5
	fnvPrime  uint32 = 0x01000193
)

// hashString hashes a string without size bytes at the given position.
func hashString[T string | []byte](s T, without, size int) uint32 {
	h := fnvOffset
	for i := range len(s) {
		if i < without || i >= without+size {
			h = (h ^ uint32(s[i])) * fnvPrime
		}
	}
	return feature.Combine(h, 0) // spread over all bits, because the table indexes by the low ones
}

// correct returns the word of the registry that an unknown folded word
// misspells, or "".
func (x *typoIndex) correct(word []byte) string {
	if n := utf8.RuneCount(word); n < minTypoLetters-1 || n > maxTypoLetters+1 {
		return ""
	}
	if found := x.find(hashString(word, len(word), 0), word); found != "" {
		return found
	}
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRune(word[i:])
		if found := x.find(hashString(word, i, size), word); found != "" {
			return found
		}
		i += size
	}
	return ""
}

// find returns the first word with the form that is one edit from the given
// word.
func (x *typoIndex) find(form uint32, word []byte) string {
	number := x.table.Lookup(form)
	if number < 0 {
		return ""
	}
	for i := x.first[number]; i >= 0; i = x.forms[i].next {
		if oneEdit(x.forms[i].word, word) {
			return x.forms[i].word
		}
	}
	return ""
}

// oneEdit reports whether one insertion, deletion, substitution or
// transposition of adjacent letters turns a into b.
func oneEdit(a string, b []byte) bool {
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	for from > 0 && from < len(a) && !utf8.RuneStart(a[from]) {
		from--
	}
	restA, restB := len(a), len(b)
	for restA > from && restB > from && a[restA-1] == b[restB-1] {
		restA--
		restB--
	}
	for restA < len(a) && !utf8.RuneStart(a[restA]) {
		restA++
		restB++
	}
	one, other := a[from:restA], b[from:restB]
	switch n, m := utf8.RuneCountInString(one), utf8.RuneCount(other); {
	case n <= 1 && m <= 1:
		return n+m > 0
	case n == 2 && m == 2:
		first, size := utf8.DecodeRuneInString(one)
		second, _ := utf8.DecodeRuneInString(one[size:])
		last, size := utf8.DecodeRune(other)
		before, _ := utf8.DecodeRune(other[size:])
		return first == before && second == last
	}
	return false
}
