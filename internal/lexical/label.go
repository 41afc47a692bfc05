package lexical

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labelSet contains the names of intents and agents in the spelling of programs
// (code_review, codeReview). They are not evidence for what a text asks: people
// write "review this code"; a name copied from a registry comes from a program
// or from an attacker.
//
// Only names of intents with examples are labels, because an intent without
// examples is recognized by its name in any spelling. A name is not a label if
// an example or keyword contains it in that spelling: the registry then states
// that people write it.
type labelSet struct {
	bySpelling map[string]*nameLabel
	maxWords   int // of the longest label
}

type nameLabel struct {
	spelling string
	intents  []int32 // that have this name
}

// addLabels collects the labels of the documents, whose index is the number of
// the intent.
func (t *indexBuilder) addLabels(docs []IntentDoc) {
	plain := map[string]bool{} // names of intents without examples, and of their agents
	for i := range docs {
		if len(docs[i].Examples) == 0 {
			for _, name := range docs[i].names() {
				plain[normalizeLabel(name)] = true
			}
		}
	}
	l := &labelSet{bySpelling: map[string]*nameLabel{}}
	for i := range docs {
		for _, name := range docs[i].names() {
			if key := normalizeLabel(name); !plain[key] {
				l.addLabel(key, int32(i))
			}
		}
	}
	w := newTokenizer()
	w.labels = l
	for i := range docs {
		for _, text := range slices.Concat(docs[i].Examples, docs[i].Keywords) {
			for w.reset(text); w.next(); {
				if w.current != nil {
					delete(l.bySpelling, w.current.spelling)
					w.reset(text) // the same words may contain another label
				}
			}
		}
	}
	if len(l.bySpelling) > 0 {
		t.model.labels = l
	}
}

// names returns the names of the intent and its agents.
func (d *IntentDoc) names() []string { return append([]string{d.Name}, d.Agents...) }

// addLabel adds a name that consists of several words in the spelling of
// programs.
func (l *labelSet) addLabel(spelling string, intent int32) {
	words := 1 + strings.Count(spelling, "_")
	if words == 1 {
		return
	}
	l.maxWords = max(l.maxWords, words)
	known := l.bySpelling[spelling]
	if known == nil {
		known = &nameLabel{spelling: spelling}
		l.bySpelling[spelling] = known
	}
	if !slices.Contains(known.intents, intent) {
		known.intents = append(known.intents, intent)
	}
}

// findIn returns the first label in a normalized name, or nil. It may be the
// whole name or some of its words (code_review_v2).
func (l *labelSet) findIn(spelling []byte) *nameLabel {
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

// normalizeLabel returns a name in the form in which labels are compared: lower
// case, with one underscore between words, at underscores and inner capitals.
func normalizeLabel(name string) string { return string(appendNormalized(nil, name)) }

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

// labelScanner is the part of the tokenizer that recognizes labels.
type labelScanner struct {
	labels    *labelSet  // nil = none
	current   *nameLabel // label that contains the current word, or nil
	joinedEnd int        // end of the joined words that were looked up together
	key       []byte     // their normalized form
}

// lookUpLabel looks up the label that contains the word at start, together with
// the words joined to it.
func (w *tokenizer) lookUpLabel(start int) {
	end := start
	for end < len(w.text) {
		r, size := utf8.DecodeRuneInString(w.text[end:])
		if r != '_' && (!isWordRune(r) || isUnspaced(r)) {
			break
		}
		end += size
	}
	w.joinedEnd = end
	w.key = appendNormalized(w.key[:0], w.text[start:end])
	w.current = w.labels.findIn(w.key)
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

// forEachLabelIntent calls use for every intent that a label in the text names.
func (m *Model) forEachLabelIntent(text string, use func(intent int32)) {
	w := newTokenizer()
	w.labels = m.labels
	for w.reset(text); w.next(); {
		if w.current == nil {
			continue
		}
		for _, intent := range w.current.intents {
			use(intent)
		}
	}
}

// splitCamel inserts spaces at the word borders of camelCase: codeReview,
// HTTPServer.
func splitCamel(label string) string {
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

// joinWords returns a label written as one word.
func joinWords(label string) string {
	return strings.Map(func(r rune) rune {
		if isWordRune(r) || r == '+' || r == '#' { // C++ is not C
			return r
		}
		return -1
	}, label)
}
