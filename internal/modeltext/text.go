package modeltext

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/plaintext"
)

// images matches images of Markdown, with the alternative text as the first group or the
// second, and of HTML.
var images = regexp.MustCompile(`!\[([^\]]*)\]\s?\([^)]*\)|!\[([^\]]*)\]\s?\[[^\]]*\]|(?i:<img\b[^>]*>?)`)

// removeImages replaces images by their alternative text. A program that shows the text would
// fetch them, and their addresses could contain masked values: a text that the model
// read can make it write them.
func removeImages(text string) string {
	return strings.TrimSpace(images.ReplaceAllString(text, "$1$2"))
}

// bytesPerToken bounds the length of an answer. It is more than any language needs,
// so it only truncates an answer that exceeds its number of tokens.
const bytesPerToken = 8

// restoreValues replaces placeholders by the masked values until the text has
// maxBytes: a reply may repeat a placeholder of a long value thousands of times. It
// reports whether it stopped before a value that does not fit. A value that never
// fits stays a placeholder, and so does one in a link: opening the link would send it to an
// address that a text which the model read can make it write.
func restoreValues(text string, maxBytes int, restore func(string) string) (string, bool) {
	var b strings.Builder
	values := map[string]string{} // so that restore is called once for each
	found := findLinks(text)
	var piece string
	var bracketed bool
	for at := 0; at < len(text) && b.Len() <= maxBytes; at += len(piece) {
		piece, bracketed = plaintext.CutBracketed(text[at:])
		if !bracketed || slices.ContainsFunc(found, func(link []int) bool { return link[0] <= at && at < link[1] }) {
			b.WriteString(piece)
			continue
		}
		value, known := values[piece]
		if !known {
			value = restore(piece)
			values[piece] = value
		}
		switch {
		case value == piece, len(value) > maxBytes:
			b.WriteString(piece)
		case b.Len()+len(value) > maxBytes:
			return b.String(), true
		default:
			b.WriteString(value)
		}
	}
	return b.String(), false
}

// truncateText truncates the text to maxBytes, plus the marks of truncation. A text
// that is or was truncated ends with its last sentence, if that is not much shorter,
// or else with its last word. An open code block is closed.
func truncateText(text string, maxBytes int, truncated bool) (string, bool) {
	if len(text) > maxBytes {
		for maxBytes > 0 && !utf8.RuneStart(text[maxBytes]) {
			maxBytes--
		}
		text, truncated = text[:maxBytes], true
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
		return strings.TrimRightFunc(text[:end], unicode.IsSpace) + " " + plaintext.Ellipsis
	}
	if end := strings.LastIndexFunc(text, unicode.IsSpace); end > len(text)/2 {
		text = strings.TrimRightFunc(text[:end], unicode.IsSpace)
	}
	return text + plaintext.Ellipsis
}

// lastSentenceEnd returns the end of the last sentence or line, or 0.
func lastSentenceEnd(text string) int {
	for end := len(text); end > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		switch {
		case r == '\n', strings.ContainsRune("。！？", r):
			return end
		case strings.ContainsRune(".!?", r):
			before, _ := utf8.DecodeLastRuneInString(text[:end-size])
			after, _ := utf8.DecodeRuneInString(text[end:])
			// Not inside "main.go", and not after the number of a list item.
			if (end == len(text) || unicode.IsSpace(after)) && !unicode.IsDigit(before) {
				return end
			}
		}
		end -= size
	}
	return 0
}
