package lexical

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/internal/lexical/negation"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// negatedFactor lowers the confidence in an intent that the text asks not to serve, so that
// it is neither acted on nor offered as a reading.
const negatedFactor = 0.2

// negatedWords are the verbs and the things that a text does not want.
type negatedWords struct{ verbs, things meaningSet }

func readNegatedWords(text string) (n negatedWords) {
	var words []negation.Word
	w := token.NewScanner()
	for _, part := range excerpt(text) {
		end, begins := 0, true
		for w.Reset(part); w.Next(); {
			words = append(words, negation.Word{Text: string(w.Word), Begins: begins || strings.ContainsAny(part[end:w.Start()], ".,;:!?¡¿\n")})
			end, begins = w.Start(), false
		}
	}
	for _, verb := range negation.FindVerbs(words) {
		n.verbs.add(verb)
	}
	for _, thing := range negation.FindRefused(words) {
		n.things.add(thing.Text)
	}
	return n
}

// findNegated returns the word of the intent's name, folded, or the verb of an example that
// the text asks not to do, or "": "don't cancel my order" asks not to serve cancel_order,
// and "don't register my dog" not to serve an intent with the example "register my dog". A thing
// counts if it is the whole name. It returns "" if an example of the intent does the same.
func (m *Model) findNegated(n *negatedWords, intent int) string {
	if n.verbs.isEmpty() && n.things.isEmpty() {
		return ""
	}
	examples := m.patternsOf(intent)
	word := n.findInName(m.intents[intent])
	if word == "" {
		i := slices.IndexFunc(examples, func(p evidencePattern) bool { return p.verb != "" && n.verbs.contains(p.verb) })
		if i < 0 {
			return ""
		}
		word = examples[i].verb
	}
	if slices.ContainsFunc(examples, func(p evidencePattern) bool { return p.negates && p.doesNotWant(word) }) {
		return ""
	}
	return word
}

// findInName returns the word of an intent's name that is a negated verb, or the first one
// if all of them are things that are not wanted.
func (n *negatedWords) findInName(name string) string {
	first, wanted := "", false
	w := token.NewScanner()
	for w.Reset(token.SplitCamel(name)); w.Next(); {
		word := string(w.Word)
		if n.verbs.contains(word) {
			return word
		}
		if first == "" {
			first = word
		}
		wanted = wanted || !n.things.contains(word)
	}
	if wanted {
		return ""
	}
	return first
}

func (p *evidencePattern) doesNotWant(word string) bool {
	n := readNegatedWords(p.text)
	return n.verbs.contains(word) || n.things.contains(word)
}

// patternsOf returns the patterns of an intent.
func (m *Model) patternsOf(intent int) []evidencePattern {
	find := func(intent int) int {
		at, _ := slices.BinarySearchFunc(m.patterns, int32(intent), func(p evidencePattern, n int32) int { return cmp.Compare(p.intent, n) })
		return at
	}
	return m.patterns[find(intent):find(intent+1)]
}

// readExample returns the verb with which an example begins, behind words such as "I want
// to", and whether it may negate something.
func (t *indexBuilder) readExample(text string) (verb string, negates bool) {
	for t.tokens.Reset(text); t.tokens.Next(); {
		word := string(t.tokens.Word)
		negates = negates || negation.IsNegator(t.tokens.Word)
		if verb == "" && !leadingWords()[word] {
			verb = word
		}
	}
	return verb, negates
}

// leadingWords precede the verb of a request.
var leadingWords = sync.OnceValue(func() map[string]bool {
	leading := map[string]bool{}
	for word := range strings.FieldsSeq(wishWords + subjectWords + " to please") {
		leading[word] = true
	}
	return leading
})

// listNegated returns at most limit words that the text asks not to do.
func (m *Model) listNegated(text string, limit int, keep func(intent string) bool) (items []EvidenceItem) {
	negated := readNegatedWords(text)
	for i, name := range m.intents {
		if len(items) == limit {
			break
		}
		if !keep(name) {
			continue
		}
		if word := m.findNegated(&negated, i); word != "" {
			items = append(items, EvidenceItem{Kind: EvidenceNegation, Text: word, Intent: name, Strength: 1})
		}
	}
	return items
}

// meaningSet is a set of words, folded, which contains all words with the same stem as one
// of them, and their synonyms.
type meaningSet struct {
	stems map[string]bool
	lines map[int]bool // of the list of synonyms
}

func (s *meaningSet) isEmpty() bool { return len(s.stems) == 0 }

func (s *meaningSet) add(word string) {
	if s.stems == nil {
		s.stems, s.lines = map[string]bool{}, map[int]bool{}
	}
	stem := token.StemOf(word)
	s.stems[stem] = true
	for _, line := range synonyms.Lines(stem) {
		s.lines[line] = true
	}
}

func (s *meaningSet) contains(word string) bool {
	if s.isEmpty() {
		return false
	}
	stem := token.StemOf(word)
	return s.stems[stem] || slices.ContainsFunc(synonyms.Lines(stem), func(line int) bool { return s.lines[line] })
}
