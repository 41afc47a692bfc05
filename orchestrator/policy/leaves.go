package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// leaf is one text in a JSON value: a string, a number as text, or a list of character
// codes as the text that they spell.
type leaf struct {
	pointer string
	keys    []string // words of the member names on the path, lower case, outermost first
	name    string   // words of the last member name, joined by "_"
	member  string   // the last member name as it is
	text    string
	decoded bool // spelt by character codes
}

// Limits of the arguments that are examined.
const (
	maxLeaves   = 4096
	maxLeafText = 1 << 20 // bytes of all leaves
)

// readLeaves returns the texts of a JSON value in a fixed order: elements as listed,
// members by name, with numbers in names by value. It reports false if they exceed the
// limits or raw is not JSON.
func readLeaves(raw json.RawMessage) ([]leaf, bool) {
	if len(raw) == 0 {
		return nil, true
	}
	if len(raw) > 2*maxLeafText {
		return nil, false
	}
	var v any
	if err := strictjson.Unmarshal(raw, &v); err != nil {
		return nil, false
	}
	w := leafWalk{left: maxLeafText}
	w.walk(leaf{}, v)
	return w.list, w.left >= 0 && len(w.list) <= maxLeaves
}

type leafWalk struct {
	list []leaf
	left int
}

func (w *leafWalk) add(l leaf) {
	if w.left -= len(l.text); w.left >= 0 && len(w.list) <= maxLeaves {
		w.list = append(w.list, l)
	}
}

// walk adds the texts of v; at is the leaf to complete.
func (w *leafWalk) walk(at leaf, v any) {
	switch v := v.(type) {
	case string:
		at.text = v
		w.add(at)
	case float64:
		at.text = strconv.FormatFloat(v, 'f', -1, 64)
		w.add(at)
	case []any:
		if text, ok := spellCodes(v); ok {
			at.text, at.decoded = text, true
			w.add(at)
			return
		}
		pointer := at.pointer
		for i, item := range v {
			at.pointer = fmt.Sprintf("%s/%d", pointer, i)
			w.walk(at, item)
		}
	case map[string]any:
		for _, key := range slices.SortedFunc(maps.Keys(v), compareNatural) {
			words := splitWords(key)
			pointer := strictjson.AppendPointer(at.pointer, key)
			if len(key) >= minNameText { // a name can carry data as well
				w.add(leaf{pointer: pointer, keys: at.keys, text: key})
			}
			w.walk(leaf{pointer: pointer, keys: slices.Concat(at.keys, words), name: strings.Join(words, "_"), member: key}, v[key])
		}
	}
}

// minNameText is the length from which the name of a member is examined like a value.
const minNameText = 16

// spellCodes returns the text of a list of at least 8 ASCII codes.
func spellCodes(list []any) (string, bool) {
	if len(list) < 8 {
		return "", false
	}
	var b strings.Builder
	for _, item := range list {
		n, ok := item.(float64)
		if !ok || n < ' ' || n > '~' || n != float64(int(n)) {
			return "", false
		}
		b.WriteByte(byte(n))
	}
	return b.String(), true
}

// compareNatural orders "2" before "10".
func compareNatural(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil && x != y {
		return x - y
	}
	return strings.Compare(a, b)
}

// splitWords splits an identifier into lower-case words: repoPath, repo_path, Repo-Path.
func splitWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	previous := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		case unicode.IsUpper(r) && !unicode.IsUpper(previous):
			flush()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		previous = r
	}
	flush()
	return words
}

// hasKey reports whether one of the words is part of a name on the path.
func (l *leaf) hasKey(words ...string) bool {
	for _, key := range l.keys {
		if slices.Contains(words, key) {
			return true
		}
	}
	return false
}

// isNamed reports whether the last name on the path, or its last word, is one of the
// words.
func (l *leaf) isNamed(words ...string) bool {
	last := l.name
	if i := strings.LastIndexByte(last, '_'); i >= 0 {
		last = last[i+1:]
	}
	return slices.Contains(words, l.name) || slices.Contains(words, last)
}

// isFreeText reports whether people read the value, so that it may contain anything.
func (l *leaf) isFreeText() bool {
	return l.isNamed("content", "contents", "text", "body", "message", "description", "summary", "subject", "title",
		"query", "sql", "statement", "thought", "prompt", "code", "comment", "insight", "observations", "jql", "caption", "note", "html", "markdown")
}
