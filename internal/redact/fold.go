package redact

import (
	"unicode"
	"unicode/utf8"
)

// foldedText is a text with look-alike characters replaced by ASCII: full-width
// letters and digits, digits of other scripts, spaces and dashes of any width.
// Invisible characters are removed.
type foldedText struct {
	text         string
	starts, ends []int // by byte: its character's position in the original
}

// foldRune returns the ASCII equivalent of r, r itself if there is none, or
// runeDropped if r is invisible.
func foldRune(r rune) rune {
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
	case isInvisible(r):
		return runeDropped
	case r >= 0x660 && unicode.IsDigit(r):
		return '0' + digitValue(r)
	}
	return r
}

const runeDropped = -1

// isInvisible reports whether r is a soft hyphen, zero-width character,
// bidirectional mark, variation selector or tag.
func isInvisible(r rune) bool {
	switch {
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x180E, r == 0xFEFF,
		0x200B <= r && r <= 0x200F, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F,
		0xFE00 <= r && r <= 0xFE0F, 0xE0000 <= r && r <= 0xE01EF:
		return true
	}
	return false
}

// digitValue returns the value of a decimal digit of any script. Unicode
// assigns them in ascending runs of ten.
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

// needsFolding reports whether foldText would change the text.
func needsFolding(text string) bool {
	for _, r := range text {
		if r >= 0xA0 && foldRune(r) != r {
			return true
		}
	}
	return false
}

func foldText(text string) foldedText {
	plain := make([]byte, 0, len(text))
	f := foldedText{starts: make([]int, 0, len(text)), ends: make([]int, 0, len(text))}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		before := len(plain)
		switch p := foldRune(r); p {
		case runeDropped:
		case r:
			plain = append(plain, text[i:i+n]...) // also invalid bytes
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
