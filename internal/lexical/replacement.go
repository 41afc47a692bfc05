package lexical

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

const (
	// minTypoLetters is the least length of a word of the registry that an
	// unknown word may be a misspelling of, and the unknown word may be one
	// letter shorter. Of shorter words, too many are one edit apart.
	minTypoLetters = 5
	// maxTypoLetters bounds the words that are indexed.
	maxTypoLetters = 24
)

// typoIndex finds the words of the registry that are one insertion, deletion,
// substitution or transposition of adjacent letters away from a word. It
// contains every word with any one letter deleted (symmetric deletion): two
// words one edit apart have such a form in common.
type typoIndex struct {
	table featureTable // hash of a form → number
	first []int32      // by number: index of its first entry in forms
	forms []typoForm
}

type typoForm struct {
	word string // in the spelling that the form belongs to
	next int32  // entry of the same form, -1 if none
}

// newTypoIndex indexes folded words, and their singulars as spellings of their
// own. Words that occur more often are found first.
func newTypoIndex(count map[string]int) typoIndex {
	words, forms := make([]string, 0, len(count)), 0
	for w := range count {
		if n := utf8.RuneCountInString(w); n >= minTypoLetters && n <= maxTypoLetters {
			words = append(words, w)
			forms += n + 1
		}
	}
	slices.SortFunc(words, func(a, b string) int {
		if count[a] != count[b] {
			return count[a] - count[b] // the last one added is found first
		}
		return strings.Compare(b, a)
	})
	x := typoIndex{table: newFeatureTable(forms), forms: make([]typoForm, 0, forms), first: make([]int32, 0, forms)}
	for _, w := range words {
		x.addSpelling(w)
	}
	x.table = x.table.shrinkToFit()
	return x
}

func (x *typoIndex) addSpelling(word string) {
	x.addForm(hashString(word, len(word), 0), word)
	for i, r := range word {
		x.addForm(hashString(word, i, utf8.RuneLen(r)), word)
	}
}

func (x *typoIndex) addForm(hash uint32, word string) {
	number := x.table.insert(hash)
	next := int32(-1)
	if int(number) == len(x.first) {
		x.first = append(x.first, 0)
	} else if next = x.first[number]; x.forms[next].word == word {
		return // a double letter
	}
	x.first[number] = int32(len(x.forms))
	x.forms = append(x.forms, typoForm{word, next})
}

// hashString hashes a string without size bytes at the given position.
func hashString[T string | []byte](s T, without, size int) uint32 {
	h := seedText
	for i := range len(s) {
		if i < without || i >= without+size {
			h = (h ^ uint32(s[i])) * hashPrime
		}
	}
	return mixHash(h)
}

// correct returns the word of the registry that an unknown folded word
// misspells, or "".
func (x *typoIndex) correct(word []byte) string {
	if n := utf8.RuneCount(word); n < minTypoLetters-1 || n > maxTypoLetters+1 {
		return ""
	}
	if found := x.find(hashString(word, len(word), 0), word); found != "" {
		return found
	}
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRune(word[i:])
		if found := x.find(hashString(word, i, size), word); found != "" {
			return found
		}
		i += size
	}
	return ""
}

// find returns the first word with the form that is one edit from the given
// word.
func (x *typoIndex) find(form uint32, word []byte) string {
	number := x.table.lookup(form)
	if number < 0 {
		return ""
	}
	for i := x.first[number]; i >= 0; i = x.forms[i].next {
		if oneEdit(x.forms[i].word, word) {
			return x.forms[i].word
		}
	}
	return ""
}

// oneEdit reports whether one insertion, deletion, substitution or
// transposition of adjacent letters turns a into b.
func oneEdit(a string, b []byte) bool {
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	for from > 0 && from < len(a) && !utf8.RuneStart(a[from]) {
		from--
	}
	restA, restB := len(a), len(b)
	for restA > from && restB > from && a[restA-1] == b[restB-1] {
		restA--
		restB--
	}
	for restA < len(a) && !utf8.RuneStart(a[restA]) {
		restA++
		restB++
	}
	one, other := a[from:restA], b[from:restB]
	switch n, m := utf8.RuneCountInString(one), utf8.RuneCount(other); {
	case n <= 1 && m <= 1:
		return n+m > 0
	case n == 2 && m == 2:
		first, size := utf8.DecodeRuneInString(one)
		second, _ := utf8.DecodeRuneInString(one[size:])
		last, size := utf8.DecodeRune(other)
		before, _ := utf8.DecodeRune(other[size:])
		return first == before && second == last
	}
	return false
}

// replacementIndex finds the word of the corpus that an unknown word or a phrase counts as.
type replacementIndex struct {
	typos     typoIndex
	synonyms  synonymIndex
	phrases   phraseIndex
	writtenAs map[string]string // singular that no text contains → the word of the corpus that evidence shows
}

// wordReplacement is a word of the registry that a word or phrase of a text counts as.
type wordReplacement struct {
	meant string
	kind  EvidenceKind
}

// synonymIndex maps the stem of a word that the corpus does not contain to a word of the
// corpus with the same meaning: the one that occurs most often.
type synonymIndex map[string]string

// maxPhraseWords bounds the words of a phrase.
const maxPhraseWords = 4

// phraseIndex maps phrases to words of the corpus with the same meaning. Phrases are read
// from their last word backwards: the key is the hash of the stems from there on.
type phraseIndex map[uint64]phraseEnd

// phraseEnd is the end of one or more phrases.
type phraseEnd struct {
	meant  string // the word that it means if it is a whole phrase
	longer bool   // it is the end of a longer phrase as well
}

// recentWord is a word of a text that may belong to a phrase.
type recentWord struct {
	stem    uint64 // hash
	start   int    // in the text
	unknown bool   // it counts as unknown
}

// newSynonyms builds the indexes from the folded words of a corpus and their counts. Of several
// words with the same meaning, the one with the highest preference counts, else the most
// frequent one.
func newSynonyms(count, preference map[string]int) (synonymIndex, phraseIndex) {
	frequent := map[string]string{} // by stem: its most frequent spelling
	known, listed := knownMeanings(), map[string]bool{}
	for w, n := range count {
		stem := token.StemOf(w)
		listed[stem] = listed[stem] || known.contains([]byte(w), []byte(stem))
		if best, ok := frequent[stem]; !ok || n > count[best] || n == count[best] && w < best {
			frequent[stem] = w
		}
	}
	synonyms, phrases := synonymIndex{}, phraseIndex{}
	for _, m := range known.list {
		meant := ""
		for _, stem := range m.stems {
			own := frequent[stem]
			if listed[stem] && (meant == "" || cmp.Or(preference[own]-preference[meant], count[own]-count[meant]) > 0) {
				meant = own
			}
		}
		if meant == "" {
			continue
		}
		for _, stem := range m.stems {
			if _, ok := frequent[stem]; !ok {
				synonyms[stem] = meant
			}
		}
		for _, phrase := range m.phrases {
			phrases.add(phrase, meant)
		}
	}
	return synonyms, phrases
}

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
// an inflection of one. Other words have the same stem by accident: "estación" (station) and
// "estacionar" (to park), "train" and "training".
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

// add adds a phrase. Of several meanings the first is kept.
func (x phraseIndex) add(stems []string, meant string) {
	var key uint64
	for i, stem := range slices.Backward(stems) {
		key = phraseKey(key, hashWord(textHashSeed, []byte(stem)))
		end := x[key]
		if i > 0 {
			end.longer = true
		} else if end.meant == "" {
			end.meant = meant
		}
		x[key] = end
	}
}

// longest returns what the longest phrase that ends with the word at a position means, and
// the number of its words, 0 if there is none.
func (x phraseIndex) longest(recent *[maxPhraseWords]recentWord, at int32) (meant string, words int32) {
	var key uint64
	for n := range min(at+1, maxPhraseWords) {
		key = phraseKey(key, recent[(at-n)%maxPhraseWords].stem)
		end, ok := x[key]
		if ok && end.meant != "" {
			meant, words = end.meant, n+1
		}
		if !end.longer {
			break
		}
	}
	return meant, words
}

// phraseKey extends a key by the hash of the stem before it.
func phraseKey(key, stem uint64) uint64 { return (key ^ stem) * textHashPrime }

// replaceWord returns the word of the corpus that an unknown folded word with the given
// stem counts as, and whether it is a synonym or a misspelling; "" if there is none.
func (m *Model) replaceWord(word, stem []byte) (string, EvidenceKind) {
	known := knownMeanings()
	meant := m.synonyms[string(stem)]
	if meant != "" && (known.words[string(word)] || !m.common.contains(wordHash(word)) && known.contains(word, stem)) {
		return meant, EvidenceSynonym // and no other word that only has the same stem
	}
	if m.common.containsStem(stem) || known.stems[string(stem)] {
		return "", "" // spelt correctly
	}
	return m.typos.correct(word), EvidenceTypo
}

// wordVector returns the vector of a folded word with the given stem: its own if it is an
// English one, else that of its meaning in lexicon.Synonyms, whatever its language, or of its
// translations. Stop words have none.
func wordVector(word, stem []byte) (v wordvectors.Vector, translated, ok bool) {
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
