package redact

import (
	"strconv"
	"strings"
)

// placeholder is what stands for the nth value of a kind.
func placeholder(row, n int) string {
	return "[" + kinds[row].label + "_" + strconv.Itoa(n) + "]"
}

// maxOrdinal bounds the digits of what counts as a placeholder. No value of any
// kind is that short, so "[CARD_…]" cannot hide one from its scanner; and no
// request is long enough for a million values.
const maxOrdinal = 6

// maxLabel bounds the letters of a label, so that a long word behind a bracket is
// not read for every value that could reach up to it.
const maxLabel = 16

// findPlaceholders appends where the text holds what could be one of ours.
func findPlaceholders(text string, found []span) []span {
	for i := 0; ; {
		open := strings.IndexByte(text[i:], '[')
		if open < 0 {
			return found
		}
		i += open
		end := placeholderEnd(text, i)
		if end == 0 {
			i++
			continue
		}
		found = append(found, span{i, end, literal})
		i = end
	}
}

// placeholderEnd returns where the placeholder that opens at i ends, 0 when it
// is none.
func placeholderEnd(text string, i int) int {
	label, end := labelled(text, i)
	if end == 0 || !isLabel(label) {
		return 0
	}
	return end
}

func isLabel(s string) bool {
	for i := range kinds {
		if kinds[i].label == s {
			return true
		}
	}
	return false
}

// labelled reads what is written like a placeholder, whatever its label. end is
// 0 when nothing of the kind opens at i.
func labelled(text string, i int) (label string, end int) {
	if byteAt(text, i) != '[' {
		return "", 0
	}
	i++
	start := i
	for i < len(text) && i-start < maxLabel && 'A' <= text[i] && text[i] <= 'Z' {
		i++
	}
	label = text[start:i]
	if byteAt(text, i) != '_' {
		return "", 0
	}
	i++
	end = pastDigits(text[:min(len(text), i+maxOrdinal+1)], i)
	if end == i || end > i+maxOrdinal || byteAt(text, end) != ']' {
		return "", 0
	}
	return label, end + 1
}
