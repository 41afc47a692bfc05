package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes text of others safe for a terminal: control characters, which
// could move the cursor or hide what was printed, and those that turn the
// direction of text around become U+FFFD. Line breaks stay, tabs become spaces.
func printable(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\t", "    ")
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) && r > '\u200f') {
			return utf8.RuneError
		}
		return r
	}, s)
}

// oneLine keeps a text on the one line it has.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "; ")
}

// textWidth is how many columns a terminal needs for s, which has no control
// characters.
func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth is 0 for what combines with the character before it, 2 for what
// East Asian typography and emoji draw in a square, else 1. It knows no
// sequences: a family joined from four emoji is a few columns too wide.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	case wide(r):
		return 2
	}
	return 1
}

// wide covers the blocks of UAX #11 that are wide or full width throughout,
// near enough for aligning columns.
func wide(r rune) bool {
	return r <= 0x115f || // Hangul Jamo
		r >= 0x2e80 && r <= 0xa4cf && r != 0x303f || // CJK, kana, Yi
		r >= 0xa960 && r <= 0xa97f ||
		r >= 0xac00 && r <= 0xd7a3 || // Hangul
		r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f ||
		r >= 0xff00 && r <= 0xff60 || // full-width forms
		r >= 0xffe0 && r <= 0xffe6 ||
		r >= 0x1f300 && r <= 0x1f64f || // emoji
		r >= 0x1f680 && r <= 0x1f6ff ||
		r >= 0x1f900 && r <= 0x1faff ||
		r >= 0x20000 && r <= 0x3fffd // rare CJK
}

// cut shortens s to the width, with an ellipsis where something is missing.
func cut(s string, width int) string {
	if textWidth(s) <= width {
		return s
	}
	n := 0
	for i, r := range s {
		if n += runeWidth(r); n > width-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// wrap breaks a line into lines of at most the width, after a space or a wide
// character where there is one, else within a word. Leading spaces stay; there
// is always at least one line. The width is 2 or more.
func wrap(s string, width int) []string {
	var lines []string
	for at := breakAt(s, width); at < len(s); at = breakAt(s, width) {
		lines = append(lines, strings.TrimRight(s[:at], " "))
		s = strings.TrimLeft(s[at:], " ")
	}
	return append(lines, s)
}

// wrapBelow is wrap for text whose columns mean something: what does not fit
// goes on below the last column, or below the text of a list item.
func wrapBelow(s string, width int) []string {
	at := breakAt(s, width)
	if at == len(s) {
		return []string{s}
	}
	lines := []string{strings.TrimRight(s[:at], " ")}
	margin := lastColumn(s[:at])
	if margin > width-leastRoom {
		margin = 0
	}
	for _, line := range wrap(strings.TrimLeft(s[at:], " "), width-margin) {
		lines = append(lines, strings.Repeat(" ", margin)+line)
	}
	return lines
}

// lastColumn is the width of what stands before the last column of a line. Two
// spaces, not at the end of a sentence, begin one, and so does the mark of a list
// item: "- ", "* ", "12. ".
func lastColumn(s string) int {
	text := strings.TrimLeft(s, " ")
	start := len(s) - len(text)
	mark, _, ok := strings.Cut(text, " ")
	if number, dot := strings.CutSuffix(mark, "."); ok && (mark == "-" || mark == "*" || dot && strings.Trim(number, "0123456789") == "") {
		start += len(mark + " ")
	}
	for i := start + 2; i < len(s); i++ {
		if s[i] != ' ' && s[i-1] == ' ' && s[i-2] == ' ' && !endsSentence(s[:i]) {
			start = i
		}
	}
	return textWidth(s[:start])
}

func endsSentence(s string) bool {
	s = strings.TrimRight(s, " ")
	return s != "" && strings.ContainsRune(".!?:", rune(s[len(s)-1]))
}

// breakAt is the byte index before which a line ends that is too long, len(s) for
// one that is not. It looks no further than the width.
func breakAt(s string, width int) int {
	n, best := 0, 0
	begun := false // past the leading spaces, where breaking makes an empty line
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		w := runeWidth(r)
		if n += w; n > width {
			if best == 0 || begun && (r == ' ' || w == 2) {
				return i
			}
			return best
		}
		i += size
		begun = begun || r != ' '
		if begun && (r == ' ' || w == 2) {
			best = i
		}
	}
	return len(s)
}
