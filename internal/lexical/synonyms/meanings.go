package synonyms

import (
	"slices"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// meaning is a line of lexicon.Synonyms: the stems of words, and of the words of phrases.
type meaning struct {
	stems   []string
	phrases [][]string
}

// lexiconMeanings are all lines of lexicon.Synonyms, and the translations of other words.
type lexiconMeanings struct {
	words   map[string]bool     // in their spelling
	entries map[string][]string // the same by stem, without phrases
	list    []meaning
	stems   map[string]bool // of all words, those of phrases included
	// vectors are those of the lines, by the stems of their words.
	vectors map[string]*wordvectors.Vector
	// translations are those of the other words in lexicon.Translations, by stem, separated
	// by spaces.
	translations map[string]string
}

// knownMeanings returns the parsed lexicon.Synonyms and lexicon.Translations.
var knownMeanings = sync.OnceValue(func() *lexiconMeanings {
	known := &lexiconMeanings{words: map[string]bool{}, entries: map[string][]string{}, stems: map[string]bool{}, vectors: map[string]*wordvectors.Vector{}, translations: map[string]string{}}
	chineseWords := parseChinese()
	for line := range strings.Lines(lexicon.Synonyms) {
		var m meaning
		vectorWords, derived, _ := strings.Cut(line, "|")
		for entry := range strings.FieldsSeq(vectorWords + derived) {
			known.words[entry] = true
			for _, words := range chineseWords[entry] {
				known.addChinese(&m, words)
			}
			delete(chineseWords, entry)
			words := strings.Split(entry, "_")
			for i, w := range words {
				words[i] = token.StemOf(w)
				known.stems[words[i]] = true
			}
			if len(words) > 1 {
				m.phrases = append(m.phrases, words)
			} else {
				m.stems = append(m.stems, words[0])
				known.entries[words[0]] = append(known.entries[words[0]], entry)
			}
		}
		if vector, ok := meaningVector(vectorWords); ok {
			for _, stem := range m.stems {
				if _, ok := known.vectors[stem]; !ok {
					known.vectors[stem] = &vector
				}
			}
		}
		if len(m.stems) > 0 {
			known.list = append(known.list, m)
		}
	}
	known.addTranslations()
	for english, list := range chineseWords {
		for _, words := range list {
			if len(words) == 1 { // a phrase has no vector
				known.translations[words[0]] = english
			}
		}
	}
	return known
})

// parseChinese returns the Chinese words of lexicon.Chinese, as they are tokenized, by their
// English word.
func parseChinese() map[string][][]string {
	words := map[string][][]string{}
	tokens := token.NewScanner()
	for line := range strings.Lines(lexicon.Chinese) {
		list := strings.Fields(line)
		for _, word := range list[min(1, len(list)):] {
			var parts []string
			for tokens.Reset(word); tokens.Next(); {
				parts = append(parts, string(tokens.Word))
			}
			words[list[0]] = append(words[list[0]], parts)
		}
	}
	return words
}

// addChinese adds a Chinese word to a line of lexicon.Synonyms: a phrase, if it consists of
// several words or pairs of characters.
func (l *lexiconMeanings) addChinese(m *meaning, words []string) {
	for _, w := range words {
		l.stems[w] = true
	}
	if len(words) > 1 {
		m.phrases = append(m.phrases, words)
		return
	}
	l.words[words[0]] = true
	l.entries[words[0]] = append(l.entries[words[0]], words[0])
	m.stems = append(m.stems, words[0])
}

// contains reports whether a folded word with the given stem is a word of lexicon.Synonyms, or
// an inflection of one.
func (l *lexiconMeanings) contains(word, stem []byte) bool {
	return l.words[string(word)] ||
		slices.ContainsFunc(l.entries[string(stem)], func(entry string) bool { return isInflection(word, []byte(entry), stem) })
}

// addTranslations adds lexicon.Translations.
func (l *lexiconMeanings) addTranslations() {
	for line := range strings.Lines(lexicon.Translations) {
		english, words, _ := strings.Cut(line, " ")
		for word := range strings.FieldsSeq(words) {
			stem := token.StemOf(word)
			if l.vectors[stem] != nil {
				continue
			}
			if other, ok := l.translations[stem]; ok {
				l.translations[stem] = other + " " + english
			} else {
				l.translations[stem] = english
			}
		}
	}
}

// HasWord reports whether lexicon.Synonyms contains a folded word in this spelling.
func HasWord(word []byte) bool { return knownMeanings().words[string(word)] }

// HasForm reports whether lexicon.Synonyms contains a folded word with the given stem, or a word
// that it is an inflection of. Other words have the same stem by accident: "estación" (station)
// and "estacionar" (to park), "train" and "training".
func HasForm(word, stem []byte) bool { return knownMeanings().contains(word, stem) }

// HasStem reports whether lexicon.Synonyms contains a word with the stem, in a phrase too.
func HasStem(stem []byte) bool { return knownMeanings().stems[string(stem)] }

// Lines returns the lines of lexicon.Synonyms that contain a word with the stem. Words with a
// line in common mean the same.
func Lines(stem string) []int { return synonymLines()[stem] }

// synonymLines returns the lines of the list of synonyms that contain a stem.
var synonymLines = sync.OnceValue(func() map[string][]int {
	lines := map[string][]int{}
	for i, m := range knownMeanings().list {
		for _, stem := range m.stems {
			lines[stem] = append(lines[stem], i)
		}
	}
	return lines
})

// Vector returns the vector of a folded word with the given stem: its own if it is an
// English one, else that of its meaning in lexicon.Synonyms, whatever its language, or of its
// translations. Stop words have none.
func Vector(word, stem []byte) (v wordvectors.Vector, translated, ok bool) {
	if v, ok := wordvectors.Lookup(word); ok {
		return v, false, true
	}
	known := knownMeanings()
	if v := known.vectors[string(stem)]; v != nil {
		return *v, false, true
	}
	v, ok = meaningVector(known.translations[string(stem)])
	return v, true, ok
}

// meaningVector returns the vector of the mean of the words, which are separated by spaces.
func meaningVector(words string) (v wordvectors.Vector, ok bool) {
	var sum wordvectors.Sum
	for w := range strings.FieldsSeq(words) {
		if v, ok := wordvectors.Lookup([]byte(w)); ok {
			sum.Add(&v)
		}
	}
	return sum.Vector()
}
