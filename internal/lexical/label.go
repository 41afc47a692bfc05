package lexical

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labelSet are the names of intents and agents in the spelling of programs
// (code_review, codeReview), which is not read as evidence of what is asked for:
// people write "review this code", and who copies a name out of a registry is a
// program, or wants to be taken for one.
//
// Only names of what has examples are labels: an intent that is nothing but its
// name is recognised by that, however it is spelt. Nor is a name a label that an
// example or keyword spells so: the registry then says that people write it.
type labelSet struct {
	bySpelling map[string]*nameLabel
	maxWords   int // words that a label has
}

type nameLabel struct {
	spelling string
	intents  []int32 // it stands for
}

// addLabels finds the labels of the documents, which stand by number.
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
					w.reset(text) // there may be another in the same words
				}
			}
		}
	}
	if len(l.bySpelling) > 0 {
		t.model.labels = l
	}
}

// names are those of the intent and its agents.
func (d *IntentDoc) names() []string { return append([]string{d.Name}, d.Agents...) }

// addLabel enters a name that programs spell otherwise than people.
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

// findIn is the first label in a spelling, nil when there is none: all of it, or some
// of the words it joins (code_review_v2).
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

// normalizeLabel is a name as labels are compared: lower case, with one underscore
// between words, wherever the name has any or goes on with a capital.
func normalizeLabel(name string) string { return string(appendNormalized(nil, name)) }

func appendNormalized(key []byte, name string) []byte {
	owed, small := false, false // an underscore; the character before is a small letter
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

// labelScanner is what a reader of words knows about labels.
type labelScanner struct {
	labels    *labelSet  // to look for; nil: none
	current   *nameLabel // the word just read is a part of it; nil: of none
	joinedEnd int        // up to where words were looked up together
	key       []byte     // their spelling
}

// lookUpLabel finds out whether the word at start belongs to a label, and with it the
// words that follow joined.
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

// hasInnerCapital reports whether the word has a capital behind a small letter.
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

// forEachLabelIntent calls use for every intent that a label of the text stands for.
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
