package prompts

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// cutMark ends a text that was longer than it is shown.
const cutMark = "… [cut]"

// literal is one JSON string, or several with commas between them. Templates
// are given literals and numbers, so that none can show a text without quotes.
type literal string

// quote renders a text as one JSON string that stays on one line and shows every
// character that is in it: what has no glyph or changes how others are read
// (control and format characters, bidirectional marks, tags, variation selectors,
// separators, private and unassigned code points) is escaped, and so are the
// template's own marks. Bytes that are not UTF-8 become U+FFFD.
func quote(s string) literal {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n': // the short forms are what a model reads best in code
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '<' || r == '>' || r == '&' || hidden(r):
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return literal(b.String())
}

// escape writes \uXXXX, beyond the basic plane as a surrogate pair (RFC 8259 §7).
func escape(b *strings.Builder, r rune) {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// hidden reports whether a character cannot be seen, or changes what is seen.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// quoteAll renders a list of texts, "" for an empty one.
func quoteAll(texts []string) literal {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = string(quote(t))
	}
	return literal(strings.Join(quoted, ", "))
}

// clean is a text for people as a model is shown it: without characters that
// cannot be seen, white space collapsed, at most so many characters.
func clean(s string, most int) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			gap = b.Len() > 0
		case hidden(r):
		default:
			if gap {
				b.WriteByte(' ')
				gap = false
			}
			b.WriteRune(r)
		}
	}
	return clip(b.String(), most)
}

// cleanAll cleans a list of texts and leaves out what nothing is left of.
func cleanAll(texts []string, list, most int) []string {
	var kept []string
	for _, t := range texts {
		if len(kept) == list {
			break
		}
		if t = clean(t, most); t != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// clip cuts a text after so many characters and marks that it did.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + cutMark
		}
		n++
	}
	return s
}

// clipBytes cuts a text after so many bytes, at the end of a character, and
// marks that it did.
func clipBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + cutMark
}
