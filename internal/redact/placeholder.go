package redact

import (
	"slices"
	"strconv"
	"strings"
)

// formatPlaceholder returns the placeholder of the nth value of a kind.
func formatPlaceholder(row, n int) string {
	return "[" + detectors[row].label + "_" + strconv.Itoa(n) + "]"
}

// maxDigits bounds the digits of a placeholder. It is shorter than the values
// of any kind, so that "[CARD_…]" cannot hide one, and no request contains a
// million values.
const maxDigits = 6

// maxLabel bounds the letters of a label, so that a long word after a bracket
// is not read repeatedly.
const maxLabel = 16

// findPlaceholders appends everything that looks like a placeholder.
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
		found = append(found, span{i, end, literalRow})
		i = end
	}
}

// PlaceholderKinds returns the kinds of the placeholders in a masked text, sorted and not
// nil.
func PlaceholderKinds(text string) []string {
	kinds := []string{}
	for _, s := range findPlaceholders(text, nil) {
		label, _ := parsePlaceholder(text, s.start)
		for _, d := range detectors[:literalRow] {
			if d.label == label && !slices.Contains(kinds, d.name) {
				kinds = append(kinds, d.name)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// placeholderEnd returns the end of the placeholder that starts at i, or 0.
func placeholderEnd(text string, i int) int {
	label, end := parsePlaceholder(text, i)
	if end == 0 || !isLabel(label) {
		return 0
	}
	return end
}

func isLabel(s string) bool {
	for i := range detectors {
		if detectors[i].label == s {
			return true
		}
	}
	return false
}

// parsePlaceholder parses text in the form of a placeholder with any label. end
// is 0 if there is none at i.
func parsePlaceholder(text string, i int) (label string, end int) {
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
	end = pastDigits(text[:min(len(text), i+maxDigits+1)], i)
	if end == i || end > i+maxDigits || byteAt(text, end) != ']' {
		return "", 0
	}
	return label, end + 1
}
