package lexical

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labels are the names of intents and agents in the spelling of programs
// (code_review, codeReview), which is not read as evidence of what is asked for:
// people write "review this code", and who copies a name out of a registry is a
// program, or wants to be taken for one.
//
// Only names of what has examples are labels: an intent that is nothing but its
// name is recognised by that, however it is spelt. Nor is a name a label that an
// example or keyword spells so: the registry then says that people write it.
type labels struct {
	bySpelling map[string]*label
	most       int // words that a label has
}

type label struct {
	spelling string
	intents  []int32 // it stands for
}

// addLabels finds the labels of the documents, which stand by number.
func (t *trainer) addLabels(docs []IntentDoc) {
	plain := map[string]bool{} // names of intents without examples, and of their agents
	for i := range docs {
		if len(docs[i].Examples) == 0 {
			for _, name := range docs[i].names() {
				plain[spelling(name)] = true
			}
		}
	}
	l := &labels{bySpelling: map[string]*label{}}
	for i := range docs {
		for _, name := range docs[i].names() {
			if key := spelling(name); !plain[key] {
				l.add(key, int32(i))
			}
		}
	}
	w := newWords()
	w.labels = l
	for i := range docs {
		for _, text := range slices.Concat(docs[i].Examples, docs[i].Keywords) {
			for w.reset(text); w.next(); {
				if w.label != nil {
					delete(l.bySpelling, w.label.spelling)
					w.reset(text) // there may be another in the same words
				}
			}
		}
	}
	if len(l.bySpelling) > 0 {
		t.m.labels = l
	}
}

// names are those of the intent and its agents.
func (d *IntentDoc) names() []string { return append([]string{d.Name}, d.Agents...) }

// add enters a name that programs spell otherwise than people.
func (l *labels) add(spelling string, intent int32) {
	words := 1 + strings.Count(spelling, "_")
	if words == 1 {
		return
	}
	l.most = max(l.most, words)
	known := l.bySpelling[spelling]
	if known == nil {
		known = &label{spelling: spelling}
		l.bySpelling[spelling] = known
	}
	if !slices.Contains(known.intents, intent) {
		known.intents = append(known.intents, intent)
	}
}

// in is the first label in a spelling, nil when there is none: all of it, or some
// of the words it joins (code_review_v2).
func (l *labels) in(spelling []byte) *label {
	for {
		end := -1
		for range l.most {
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

// spelling is a name as labels are compared: lower case, with one underscore
// between words, wherever the name has any or goes on with a capital.
func spelling(name string) string { return string(appendSpelling(nil, name)) }

func appendSpelling(key []byte, name string) []byte {
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

// labelReader is what a reader of words knows about labels.
type labelReader struct {
	labels    *labels // to look for; nil: none
	label     *label  // the word just read is a part of it; nil: of none
	joinedEnd int     // up to where words were looked up together
	key       []byte  // their spelling
}

// lookUp finds out whether the word at start belongs to a label, and with it the
// words that follow joined.
func (w *words) lookUp(start int) {
	end := start
	for end < len(w.text) {
		r, size := utf8.DecodeRuneInString(w.text[end:])
		if r != '_' && (!wordRune(r) || unspaced(r)) {
			break
		}
		end += size
	}
	w.joinedEnd = end
	w.key = appendSpelling(w.key[:0], w.text[start:end])
	w.label = w.labels.in(w.key)
}

// goesOn reports whether the word has a capital behind a small letter.
func goesOn(word string) bool {
	small := false
	for _, r := range word {
		if small && unicode.IsUpper(r) {
			return true
		}
		small = unicode.IsLower(r)
	}
	return false
}

// labelled calls use for every intent that a label of the text stands for.
func (m *Model) labelled(text string, use func(intent int32)) {
	w := newWords()
	w.labels = m.labels
	for w.reset(text); w.next(); {
		if w.label == nil {
			continue
		}
		for _, intent := range w.label.intents {
			use(intent)
		}
	}
}
