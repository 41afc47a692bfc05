package redact

import (
	"unicode"
	"unicode/utf8"
)

// folded is a text in which what only looks different is plain: full-width
// letters and digits, digits of other scripts, blanks and dashes of any width.
// Characters nobody sees are gone from it.
type folded struct {
	text         string
	starts, ends []int // where each byte's character stands in the original
}

// plainOf returns the plain character for r: r itself for most, gone for one
// that is not seen.
func plainOf(r rune) rune {
	switch {
	case r < 0xA0:
		return r
	case r == 0xA0, r == 0x1680, 0x2000 <= r && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	case 0x2010 <= r && r <= 0x2015, r == 0x2212, r == 0xFE58, r == 0xFE63:
		return '-'
	case 0xFF01 <= r && r <= 0xFF5E:
		return r - 0xFEE0
	case r == 0xFE6B:
		return '@'
	case r == 0x2024, r == 0xFE52, r == 0xFF61:
		return '.'
	case unseen(r):
		return gone
	case r >= 0x660 && unicode.IsDigit(r):
		return '0' + digitValue(r)
	}
	return r
}

const gone = -1

// unseen reports soft hyphens, zero-width characters, marks of direction,
// variation selectors and tags.
func unseen(r rune) bool {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x180E, r == 0xFEFF,
		0x200B <= r && r <= 0x200F, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F,
		0xFE00 <= r && r <= 0xFE0F, 0xE0000 <= r && r <= 0xE01EF:
		return true
	}
	return false
}

// digitValue returns what a decimal digit of any script stands for: Unicode
// keeps them in tens, from zero up.
func digitValue(r rune) rune {
	for _, t := range unicode.Digit.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Digit.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}

// foldable reports whether fold would change the text.
func foldable(text string) bool {
	for _, r := range text {
		if r >= 0xA0 && plainOf(r) != r {
			return true
		}
	}
	return false
}

func fold(text string) folded {
	plain := make([]byte, 0, len(text))
	f := folded{starts: make([]int, 0, len(text)), ends: make([]int, 0, len(text))}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		before := len(plain)
		switch p := plainOf(r); p {
		case gone:
		case r:
			plain = append(plain, text[i:i+n]...) // also bytes that are no character
		default:
			plain = utf8.AppendRune(plain, p)
		}
		for range len(plain) - before {
			f.starts = append(f.starts, i)
			f.ends = append(f.ends, i+n)
		}
		i += n
	}
	f.text = string(plain)
	return f
}
