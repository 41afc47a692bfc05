package token

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Labels is a set of names in the spelling of programs (code_review, codeReview).
type Labels struct {
	bySpelling map[string]*Label
	maxWords   int // of the longest label
}

// Label is a name in the spelling of programs.
type Label struct {
	spelling string  // normalized
	Owners   []int32 // numbers of the intents or agents with this name, for example
}

// NewLabels returns an empty set.
func NewLabels() *Labels { return &Labels{bySpelling: map[string]*Label{}} }

// IsEmpty reports whether there are no labels.
func (l *Labels) IsEmpty() bool { return len(l.bySpelling) == 0 }

// Remove removes a label for all of its owners.
func (l *Labels) Remove(label *Label) { delete(l.bySpelling, label.spelling) }

// Add adds a normalized name, if it consists of several words, with the number of an owner.
func (l *Labels) Add(spelling string, owner int32) {
	words := 1 + strings.Count(spelling, "_")
	if words == 1 {
		return
	}
	l.maxWords = max(l.maxWords, words)
	known := l.bySpelling[spelling]
	if known == nil {
		known = &Label{spelling: spelling}
		l.bySpelling[spelling] = known
	}
	if !slices.Contains(known.Owners, owner) {
		known.Owners = append(known.Owners, owner)
	}
}

// findIn returns the first label in a normalized name, or nil. It may be the
// whole name or some of its words (code_review_v2).
func (l *Labels) findIn(spelling []byte) *Label {
	for {
		end := -1
		for range l.maxWords {
			rest := spelling[end+1:]
			n := bytes.IndexByte(rest, '_')
			if n < 0 {
				n = len(rest)
			}
			end += 1 + n
			if found := l.bySpelling[string(spelling[:end])]; found != nil {
				return found
			}
			if end == len(spelling) {
				break
			}
		}
		next := bytes.IndexByte(spelling, '_')
		if next < 0 {
			return nil
		}
		spelling = spelling[next+1:]
	}
}

// NormalizeLabel returns a name in the form in which labels are compared: lower
// case, with one underscore between words, at underscores and inner capitals.
func NormalizeLabel(name string) string { return string(appendNormalized(nil, name)) }

func appendNormalized(key []byte, name string) []byte {
	owed, small := false, false // an underscore is due; the previous character is lower case
	for _, r := range name {
		if r == '_' {
			owed = true
			continue
		}
		if len(key) > 0 && (owed || small && unicode.IsUpper(r)) {
			key = append(key, '_')
		}
		owed, small = false, unicode.IsLower(r)
		key = utf8.AppendRune(key, unicode.ToLower(r))
	}
	return key
}

// labelScanner is the part of a Scanner that recognizes labels.
type labelScanner struct {
	// Labels are those to recognize; nil if there are none.
	Labels *Labels
	// Label is the label that contains the current word, or nil.
	Label *Label

	joinedEnd int    // end of the joined words that were looked up together
	key       []byte // their normalized form
}

// lookUpLabel looks up the label that contains the word at start, together with
// the words joined to it.
func (w *Scanner) lookUpLabel(start int) {
	end := start
	for end < len(w.text) {
		r, size := utf8.DecodeRuneInString(w.text[end:])
		if r != '_' && (!IsWordRune(r) || IsUnspaced(r)) {
			break
		}
		end += size
	}
	w.joinedEnd = end
	w.key = appendNormalized(w.key[:0], w.text[start:end])
	w.Label = w.Labels.findIn(w.key)
}

// hasInnerCapital reports whether a capital follows a lower-case letter.
func hasInnerCapital(word string) bool {
	small := false
	for _, r := range word {
		if small && unicode.IsUpper(r) {
			return true
		}
		small = unicode.IsLower(r)
	}
	return false
}

// SplitCamel inserts spaces at the word borders of camelCase: codeReview,
// HTTPServer.
func SplitCamel(label string) string {
	runes := []rune(label)
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			acronymEnds := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(runes[i-1]) || acronymEnds {
				b.WriteByte(' ')
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// JoinWords returns a label written as one word.
func JoinWords(label string) string {
	return strings.Map(func(r rune) rune {
		if IsWordRune(r) || r == '+' || r == '#' { // C++ is not C
			return r
		}
		return -1
	}, label)
}
