package lexical

import (
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/negation"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// textAnalysis is the state of one call: a text that is matched against a
// model. It comes from the model's pool and is owned by one goroutine. Entries
// of earlier texts are recognized by an older generation, so that nothing needs
// clearing.
type textAnalysis struct {
	model      *Model
	tokens     token.Scanner
	generation uint32

	currentWord
	wordCounts
	textHash     uint64                              // of the words in order
	knownWords   []int32                             // distinct, in order of appearance
	replacements []wordReplacement                   // words of the registry that others count as
	synonymWords []int32                             // of knownWords, those of which the text has only a synonym
	typoWords    []int32                             // of knownWords, those that the text only misspells
	recent       [synonyms.MaxPhraseWords]recentWord // the last words, by position
	recentStems  [synonyms.MaxPhraseWords]uint64     // hashes of their stems
	notFor       []int32                             // intents that an unknown word speaks against
	text         string
	negator      bool // the text contains a word of which every negation has one
	hasLabel     bool // the text contains a name label
	labelOnly    bool // the text is only a label, perhaps with a domain; its words are read

	wordSeen    []uint32 // by word: generation in which it was found
	patternSeen []uint32 // by pattern: generation in which it became a candidate
	candidates  []int32  // patterns

	domainScan

	scratch scoringScratch // of the statistical model
}

// recentWord is a word of a text that may belong to a phrase.
type recentWord struct {
	start   int  // in the text
	unknown bool // it counts as unknown
}

// currentWord is the word that was looked up last.
type currentWord struct {
	word   []byte
	stem   []byte
	gerund bool // it ends in -ing, which its stem does not contain
}

// wordCounts count the words of a text.
type wordCounts struct {
	weight    float64 // total weight of the content words
	nonDomain int     // content words that are in no domain name
	misspelt  int     // words one edit from a known word
	nominal   int     // words in -ing that the model contains only in other forms
	unknown   int     // words that the model does not contain
}

// domainScan contains the words of domain names that were found in a text.
type domainScan struct {
	domainWordSeen []uint32 // by domain word: generation
	domainWordAt   []int32  // position of its first occurrence
	domainSynonyms []domainSynonym
	domainWords    []int32 // in order of appearance
	namedDomains   []namedDomain
}

// namedDomain is a domain that a text proposes.
type namedDomain struct {
	domain, at int32
	evidence   domainEvidence
	text       string // of an alias or synonym
	synonym    bool   // the text has a synonym of a word of the name or alias
}

// domainSynonym is a word of a domain name of which the text has only a synonym.
type domainSynonym struct {
	word int32
	text string // as it is written
}

// analyzeText analyzes a text. The caller returns the analysis to the pool.
func (m *Model) analyzeText(text string) *textAnalysis {
	r, ok := m.analyses.Get().(*textAnalysis)
	if !ok {
		r = m.newAnalysis()
	}
	r.analyze(text)
	return r
}

func (m *Model) newAnalysis() *textAnalysis {
	return &textAnalysis{
		model:       m,
		tokens:      token.NewScanner(),
		wordSeen:    make([]uint32, len(m.info)),
		patternSeen: make([]uint32, len(m.patterns)),
		domainScan:  domainScan{domainWordSeen: make([]uint32, len(m.domainPosts)), domainWordAt: make([]int32, len(m.domainPosts))},
		scratch:     m.statistical.newScratch(),
	}
}

// analyze splits labels into words only if the text contains nothing else that
// counts.
func (r *textAnalysis) analyze(text string) {
	r.labelOnly, r.text = false, text
	r.tokens.Labels = r.model.labels
	r.scanWords(text)
	if r.hasLabel && r.nonDomain == 0 {
		r.labelOnly = true
		r.tokens.Labels = nil
		r.scanWords(text)
	}
}

func (r *textAnalysis) scanWords(text string) {
	r.resetState()
	at := int32(0)
	r.scratch.features.Reset()
	for _, part := range excerpt(text) {
		for r.tokens.Reset(part); r.tokens.Next(); at++ {
			r.addWord(at)
		}
	}
}

// maxExcerpt is how many bytes are analyzed at the beginning of a text, and at its end. A
// request states there what it wants; a document that it contains would only add words
// and time.
const maxExcerpt = 4 << 10

// excerpt returns the beginning and the end of a long text, without a word that is cut in
// two, or the whole text.
func excerpt(text string) [2]string {
	if len(text) <= 2*maxExcerpt {
		return [2]string{text}
	}
	head, tail := text[:maxExcerpt], text[len(text)-maxExcerpt:]
	if end := strings.LastIndexFunc(head, unicode.IsSpace); end >= 0 {
		head = head[:end]
	}
	if start := strings.IndexFunc(tail, unicode.IsSpace); start >= 0 {
		tail = tail[start:]
	}
	return [2]string{head, tail}
}

func (r *textAnalysis) resetState() {
	r.generation++
	if r.generation == 0 { // wrapped around: clear stamps of the first cycle
		for _, table := range [][]uint32{r.wordSeen, r.patternSeen, r.domainWordSeen, r.scratch.seen} {
			clear(table)
		}
		r.generation = 1
	}
	r.knownWords, r.candidates, r.textHash = r.knownWords[:0], r.candidates[:0], textHashSeed
	r.domainWords, r.namedDomains, r.notFor, r.replacements = r.domainWords[:0], r.namedDomains[:0], r.notFor[:0], r.replacements[:0]
	r.domainSynonyms, r.synonymWords, r.typoWords = r.domainSynonyms[:0], r.synonymWords[:0], r.typoWords[:0]
	r.wordCounts, r.hasLabel, r.negator = wordCounts{}, false, false
}

// addWord records the current word, which is at position at. An unknown word counts as the
// word of the registry that it is a synonym or a misspelling of; if there is none, every
// occurrence counts as unknown, except for numerals. If the word ends a phrase that means a
// word of the registry, that word counts too. A label only names a domain.
func (r *textAnalysis) addWord(at int32) {
	label := r.tokens.Label != nil
	if !label {
		r.textHash = hashWord(r.textHash, r.tokens.Word)
		r.scratch.features.AddWord(r.tokens.Word)
	}
	r.negator = r.negator || negation.IsNegator(r.tokens.Word)
	r.noteStopName(at)
	r.word = append(r.word[:0], r.tokens.Word...)
	w, domain := r.lookUpWord()
	if label {
		r.noteDomainWord(domain, at)
		r.recent[at%synonyms.MaxPhraseWords], r.recentStems[at%synonyms.MaxPhraseWords], r.hasLabel = recentWord{}, 0, true
		return
	}
	r.scratch.features.AddStem(r.stem)
	r.scratch.features.AddVector(r.tokens.Word, r.stem)
	r.recent[at%synonyms.MaxPhraseWords] = recentWord{start: r.tokens.Start()}
	r.recentStems[at%synonyms.MaxPhraseWords] = synonyms.HashStem(r.stem)
	synonym, typo := "", false
	numeral := feature.IsNumeral(r.tokens.Word)
	if w < 0 && domain < 0 && !numeral {
		if against, ok := r.model.notFor[string(r.stem)]; ok {
			r.notFor = append(r.notFor, against...)
		} else if meant, kind := r.model.replaceWord(r.tokens.Word, r.stem); meant != "" {
			written := r.tokens.TextFrom(r.tokens.Start())
			w, domain = r.replaceBy(wordReplacement{meant, written, kind})
			if typo = kind == EvidenceTypo; !typo {
				synonym = written
			}
		}
	}
	switch {
	case w < 0 || synonym != "":
	case !typo:
		r.typoWords = slices.DeleteFunc(r.typoWords, func(word int32) bool { return word == w })
	case r.wordSeen[w] != r.generation:
		r.typoWords = append(r.typoWords, w)
	}
	r.noteWords(w, domain, at, synonym)
	if w < 0 && !numeral {
		r.recent[at%synonyms.MaxPhraseWords].unknown = true
		r.countUnknown(1)
	}
	r.addPhrase(at)
}

// addPhrase records the word that the longest phrase which ends at a position means.
func (r *textAnalysis) addPhrase(at int32) {
	meant, words := r.model.phrases.Longest(&r.recentStems, at)
	if words == 0 {
		return
	}
	for k := range words {
		if word := &r.recent[(at-k)%synonyms.MaxPhraseWords]; word.unknown {
			word.unknown = false
			r.countUnknown(-1)
		}
	}
	phrase := r.tokens.TextFrom(r.recent[(at-words+1)%synonyms.MaxPhraseWords].start)
	w, domain := r.replaceBy(wordReplacement{meant, phrase, EvidenceSynonym})
	r.noteWords(w, domain, at-words+1, phrase)
}

// noteWords records a word of the registry and of domain names, each -1 if it is none. The
// synonym is what the text has instead, "" if it has the word.
func (r *textAnalysis) noteWords(w, domain, at int32, synonym string) {
	if domain >= 0 {
		isNew := r.domainWordSeen[domain] != r.generation
		switch {
		case synonym == "":
			r.domainSynonyms = slices.DeleteFunc(r.domainSynonyms, func(s domainSynonym) bool { return s.word == domain })
		case isNew:
			r.domainSynonyms = append(r.domainSynonyms, domainSynonym{domain, synonym})
		}
		r.noteDomainWord(domain, at)
	}
	if w < 0 {
		return
	}
	switch {
	case synonym == "":
		r.synonymWords = slices.DeleteFunc(r.synonymWords, func(word int32) bool { return word == w })
	case r.wordSeen[w] != r.generation:
		r.synonymWords = append(r.synonymWords, w)
	}
	r.noteWord(w)
}

// replaceBy adds a word of the registry that words of the text count as, and returns its
// numbers as lookUpWord does.
func (r *textAnalysis) replaceBy(replacement wordReplacement) (w, domain int32) {
	r.word = append(r.word[:0], replacement.meant...)
	r.scratch.features.AddReplacement(r.word)
	w, domain = r.lookUpWord()
	r.scratch.features.AddReplacementStem(r.stem)
	r.scratch.features.AddVector([]byte(replacement.meant), r.stem)
	r.replacements = append(r.replacements, replacement)
	if replacement.kind == EvidenceTypo {
		r.misspelt++
	}
	return w, domain
}

// noteDomainWord records a word of domain names, -1 if it is none.
func (r *textAnalysis) noteDomainWord(domain, at int32) {
	if domain >= 0 && r.domainWordSeen[domain] != r.generation {
		r.domainWordSeen[domain], r.domainWordAt[domain] = r.generation, at
		r.domainWords = append(r.domainWords, domain)
	}
}

// noteStopName records the current word if it is a stop word and written as the name of a
// domain. It changes r.word.
func (r *textAnalysis) noteStopName(at int32) {
	if len(r.model.stopNames) == 0 {
		return
	}
	r.word = append(r.word[:0], r.tokens.Word...)
	if name, ok := r.model.stopNames[string(token.FoldNumber(r.word))]; ok && r.tokens.IsWrittenAsName() {
		r.noteDomainWord(name, at)
	}
}

// noteWord records a word of the registry.
func (r *textAnalysis) noteWord(w int32) {
	if r.wordSeen[w] == r.generation {
		return
	}
	r.wordSeen[w] = r.generation
	r.knownWords = append(r.knownWords, w)
	if info := &r.model.info[w]; !info.stop {
		if r.gerund && !info.gerund {
			r.nominal++
		}
		r.weight += info.weight
		if !info.domain {
			r.nonDomain++
		}
	}
}

// countUnknown adds n unknown words.
func (r *textAnalysis) countUnknown(n int) {
	r.weight += float64(n) * r.model.unknownWeight
	r.nonDomain += n
	r.unknown += n
}

// lookUpWord returns the numbers of the word in r.word, as a word and as part
// of a domain name, each -1 if unknown. It changes r.word, and sets r.stem.
func (r *textAnalysis) lookUpWord() (word, domain int32) {
	form := token.FoldNumber(r.word)
	domain, ok := r.model.domainWords[string(form)]
	if !ok {
		domain = -1
	}
	r.stem = token.Stem(form)
	r.gerund = token.IsGerund(form, r.stem)
	if word, ok = r.model.words[string(r.stem)]; !ok {
		word = -1
	}
	return word, domain
}

// candidatePatterns returns the patterns that share an indexed word with the
// text.
func (r *textAnalysis) candidatePatterns() []int32 {
	for _, w := range r.knownWords {
		for _, p := range r.model.posts[w] {
			if r.patternSeen[p] != r.generation {
				r.patternSeen[p] = r.generation
				r.candidates = append(r.candidates, p)
			}
		}
	}
	return r.candidates
}

// measureOverlap counts which words of the pattern the text contains.
func (r *textAnalysis) measureOverlap(p *evidencePattern) patternOverlap {
	var o patternOverlap
	for _, w := range p.words {
		if r.wordSeen[w] != r.generation {
			continue
		}
		o.words++
		if info := &r.model.info[w]; !info.stop {
			o.content++
			o.weight += info.weight
		}
	}
	return o
}

// findDomainName reports whether the text contains every word of the name, and
// the position of the first one.
func (r *textAnalysis) findDomainName(name *domainName) (at int32, ok bool) {
	at = r.domainWordAt[name.words[0]]
	for _, w := range name.words {
		if r.domainWordSeen[w] != r.generation {
			return 0, false
		}
		at = min(at, r.domainWordAt[w])
	}
	return at, true
}

// Parameters of a 64-bit FNV-1a hash.
const (
	textHashSeed  uint64 = 14695981039346656037
	textHashPrime uint64 = 1099511628211
)

// hashWord continues the hash of a text with its next word.
func hashWord(h uint64, word []byte) uint64 {
	for _, c := range word {
		h = (h ^ uint64(c)) * textHashPrime
	}
	return (h ^ ' ') * textHashPrime
}
