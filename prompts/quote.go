package prompts

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// truncationMark ends a truncated text.
const truncationMark = "… [cut]"

// jsonLiteral is one JSON string, or several separated by commas. Templates
// receive only literals and numbers, so that no text can appear unquoted.
type jsonLiteral string

// quoteJSON renders a text as one JSON string on one line in which every
// character is visible. It escapes the delimiters of the template and all
// characters that have no glyph or change how others are displayed: control and
// format characters, bidirectional marks, tags, variation selectors,
// separators, private and unassigned code points. Invalid UTF-8 becomes U+FFFD.
func quoteJSON(s string) jsonLiteral {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n': // models read the short escapes best in code
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '<' || r == '>' || r == '&' || isInvisible(r):
			writeEscape(&b, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return jsonLiteral(b.String())
}

// writeEscape writes \uXXXX, or a surrogate pair outside the basic plane (RFC
// 8259 §7).
func writeEscape(b *strings.Builder, r rune) {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// isInvisible reports whether a character is invisible or changes how others
// are displayed.
func isInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// quoteAll renders a list of texts.
func quoteAll(texts []string) jsonLiteral {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = string(quoteJSON(t))
	}
	return jsonLiteral(strings.Join(quoted, ", "))
}

// cleanText prepares a description for a model: no invisible characters, white
// space collapsed, truncated to most characters.
func cleanText(s string, most int) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			gap = b.Len() > 0
		case isInvisible(r):
		default:
			if gap {
				b.WriteByte(' ')
				gap = false
			}
			b.WriteRune(r)
		}
	}
	return truncateRunes(b.String(), most)
}

// cleanTexts cleans a list of texts, and drops those that become empty.
func cleanTexts(texts []string, list, most int) []string {
	var kept []string
	for _, t := range texts {
		if len(kept) == list {
			break
		}
		if t = cleanText(t, most); t != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// truncateRunes truncates a text to most characters and marks it.
func truncateRunes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + truncationMark
		}
		n++
	}
	return s
}

// truncateBytes truncates a text to most bytes, at a character border, and
// marks it.
func truncateBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + truncationMark
}
