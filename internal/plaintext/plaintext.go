// Package plaintext formats text that is shown to people, in terminals, logs and answers.
package plaintext

import (
	"strconv"
	"strings"
	"unicode"
)

// CountNoun returns the number and the noun, with an s unless the number is 1.
func CountNoun(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// FormatUnequal formats two numbers with two decimals, or with all if they would look equal.
func FormatUnequal(a, b float64) (string, string) {
	show := func(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }
	if x, y := show(a, 2), show(b, 2); x != y {
		return x, y
	}
	return show(a, -1), show(b, -1)
}

// Clean removes characters that control a terminal, change the direction of writing,
// hide text or have no width. Line breaks, tabs and the joiners that many scripts need
// stay.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r': // removing it would join two words
			return ' '
		case r == '\u2028', r == '\u2029', r == '\u0085':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r >= 0xe0000 && r <= 0xe007f,
			r == '\u00ad', r == '\u180e', r == '\u200b', r >= '\u2060' && r <= '\u2064', r == '\ufeff':
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	return strings.TrimSpace(s)
}

// SingleLine returns the text as Clean does, on one line with one space between words.
func SingleLine(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// IsControl reports whether the character controls a terminal, breaks a line, changes
// the direction of writing, or joins or separates characters without a width. Clean
// keeps line breaks, and the joiners.
func IsControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

// Ellipsis marks a text that was truncated.
const Ellipsis = "…"

// CutBracketed returns the bracketed word at the beginning of the text, or else the text
// up to the next bracket. A placeholder of masked data is a bracketed word. The text must
// not be empty.
func CutBracketed(text string) (piece string, bracketed bool) {
	end := strings.IndexAny(text[1:], "[]") + 1
	switch {
	case end == 0:
		return text, false
	case text[0] == '[' && text[end] == ']':
		return text[:end+1], true
	}
	return text[:end], false
}
