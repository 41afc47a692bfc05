package fallback

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// bytesPerToken bounds an answer on our side. It is more than any language
// needs, so it cuts only what did not keep to its number of tokens.
const bytesPerToken = 8

// ellipsis ends an answer that does not end by itself.
const ellipsis = "…"

// cleanText is a model's text without characters that steer a terminal, turn the
// direction of writing, hide a message or have no width. Lines, tabs and joiners,
// which many scripts need, stay.
func cleanText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r': // as is, it would glue the words beside it
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

// restoreValues puts the values back into a text of at most so many bytes: a reply may
// repeat a long one thousands of times. The text ends before a value that has no
// room left; one that never has any stays a placeholder. It is cut where the rest
// has no room either, which is for within to see.
func restoreValues(text string, most int, restore func(string) string) (string, bool) {
	var b strings.Builder
	values := map[string]string{} // each is asked for once
	for text != "" && b.Len() <= most {
		piece, bracketed := nextPiece(text)
		text = text[len(piece):]
		if !bracketed {
			b.WriteString(piece)
			continue
		}
		value, known := values[piece]
		if !known {
			value = restore(piece)
			values[piece] = value
		}
		switch {
		case value == piece, len(value) > most:
			b.WriteString(piece)
		case b.Len()+len(value) > most:
			return b.String(), true
		default:
			b.WriteString(value)
		}
	}
	return b.String(), false
}

// nextPiece is what a text begins with: a bracketed word, as a placeholder is
// one, or anything up to the next bracket.
func nextPiece(text string) (piece string, bracketed bool) {
	end := strings.IndexAny(text[1:], "[]") + 1
	switch {
	case end == 0:
		return text, false
	case text[0] == '[' && text[end] == ']':
		return text[:end+1], true
	}
	return text[:end], false
}

// truncateText returns the text with at most so many bytes, but for the marks of a
// cut. A text that was or is cut ends with its last sentence, if that is not
// much shorter, or with its last word. A code block left open is closed.
func truncateText(text string, most int, truncated bool) (string, bool) {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text, truncated = text[:most], true
	}
	if !truncated {
		return text, false
	}
	text = cutAtSentence(text)
	if strings.Count(text, "```")%2 == 1 {
		text += "\n```"
	}
	return text, true
}

func cutAtSentence(text string) string {
	if end := lastSentenceEnd(text); end > len(text)/2 {
		return strings.TrimRightFunc(text[:end], unicode.IsSpace) + " " + ellipsis
	}
	if end := strings.LastIndexFunc(text, unicode.IsSpace); end > len(text)/2 {
		text = strings.TrimRightFunc(text[:end], unicode.IsSpace)
	}
	return text + ellipsis
}

// lastSentenceEnd is the end of the last sentence or line of a text, 0 for none.
func lastSentenceEnd(text string) int {
	for end := len(text); end > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		switch {
		case r == '\n', strings.ContainsRune("。！？", r):
			return end
		case strings.ContainsRune(".!?", r):
			before, _ := utf8.DecodeLastRuneInString(text[:end-size])
			after, _ := utf8.DecodeRuneInString(text[end:])
			// Not in "main.go", and not behind the number of a list item.
			if (end == len(text) || unicode.IsSpace(after)) && !unicode.IsDigit(before) {
				return end
			}
		}
		end -= size
	}
	return 0
}
