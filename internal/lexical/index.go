package lexical

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/chinese"
	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// wordIndex contains the words of a corpus, and the patterns that contain them. Words are
// numbered.
type wordIndex struct {
	words    map[string]int32  // stem → number
	info     []wordInfo        // by word
	posts    [][]int32         // by word: patterns indexed under it
	patterns []evidencePattern // by number, in the order of the intents

	intentsWith   [][]int32 // by word: the intents with it in the name or an example, sorted
	unknownWeight float64   // of a word that the corpus does not contain
}

// wordInfo describes a word of the corpus.
type wordInfo struct {
	weight   float64
	intents  int32 // number of intents with it in the name or an example
	families int32 // number of sets of agents that serve these intents, or have it in the name of a domain
	stop     bool
	common   bool
	domain   bool // part of a domain name
	pair     bool // a pair of ideographs or kana
	gerund   bool // the corpus has its form in -ing
}

// evidencePattern is a text that is evidence for an intent: its name, an example or
// a keyword.
type evidencePattern struct {
	kind    patternKind
	intent  int32
	words   []int32 // distinct; of an example the content words, if it has any
	content int     // number of content words
	weight  float64 // of the content words
	text    string  // as declared; "" for another spelling of a name
	verb    string  // with which an example begins, folded
	negates bool    // the example may negate something
}

type patternKind uint8

const (
	patternName patternKind = iota
	patternExample
	patternKeyword
)

// domainName is a spelling of a domain name (its words, or all of them joined), an
// alias, or a word that is learned.
type domainName struct {
	domain   int32
	words    []int32
	evidence domainEvidence
	text     string // of an alias
}

// addCorpus adds all texts of the corpus.
func (t *indexBuilder) addCorpus(c *Corpus, docs []IntentDoc, domains []string) {
	for w := range strings.FieldsSeq(lexicon.StopWords) {
		t.model.info[t.addWord([]byte(w))].stop = true
	}
	clear(t.spellings) // no misspelt stop words
	for _, d := range docs {
		t.addIntent(d)
	}
	t.intentWords = maps.Clone(t.spellings)
	for _, name := range domains {
		t.addDomain(name)
	}
	t.addAliases(c.Aliases)
	t.addLabels(docs)
}

type indexBuilder struct {
	model  *Model
	tokens token.Scanner
	// spellings counts the folded words of the corpus, and their singulars.
	spellings   map[string]int
	intentWords map[string]int // the same without the names of domains
	written     map[string]int // without singulars that no text contains
}

// writtenForms returns, for each singular that no text contains, its most frequent word.
func (t *indexBuilder) writtenForms() map[string]string {
	forms := map[string]string{}
	for w, n := range t.written {
		form := string(token.FoldNumber([]byte(w)))
		if t.written[form] > 0 {
			continue
		}
		if best, ok := forms[form]; !ok || n > t.written[best] || n == t.written[best] && w < best {
			forms[form] = w
		}
	}
	return forms
}

// countFamilies counts, for each word, the sets of agents that have it in the names or
// examples of their intents, or in the name of a domain.
func (t *indexBuilder) countFamilies(docs []IntentDoc) {
	seen := map[[2]int32]bool{}
	count := func(w, family int32) {
		if key := [2]int32{w, family}; !seen[key] {
			seen[key] = true
			t.model.info[w].families++
		}
	}
	families := agentFamilies(docs).of
	for w, intents := range t.model.intentsWith {
		for _, intent := range intents {
			count(int32(w), families[intent])
		}
	}
	for i := range docs {
		for _, domain := range docs[i].Domains {
			for t.tokens.Reset(token.SplitCamel(domain)); t.tokens.Next(); {
				if w, ok := t.model.words[string(token.Stem(token.FoldNumber(t.tokens.Word)))]; ok {
					count(w, families[i])
				}
			}
		}
	}
}

// verbatimTexts maps the hash of each example, and of each name with several words, to the
// intent that declares it.
func (t *indexBuilder) verbatimTexts(docs []IntentDoc) map[uint64]int32 {
	owner := map[uint64]int32{}
	declare := func(text string, intent, minWords int) (hasWords bool) {
		h, words := textHashSeed, 0
		for t.tokens.Reset(text); t.tokens.Next(); words++ {
			h = hashWord(h, t.tokens.Word)
		}
		if words < minWords {
			return false
		}
		if other, ok := owner[h]; ok && other != int32(intent) {
			owner[h] = -1
		} else {
			owner[h] = int32(intent)
		}
		return true
	}
	for i := range docs {
		for _, text := range docs[i].Examples {
			declare(text, i, 1)
		}
		if declare(token.SplitCamel(docs[i].Name), i, 2) {
			declare(docs[i].Name, i, 1) // bookRoom as it is written, too
		}
	}
	return owner
}

func (t *indexBuilder) addIntent(d IntentDoc) {
	intent := int32(len(t.model.intents))
	t.model.intents = append(t.model.intents, d.Name)
	vocabulary := map[int32]bool{}

	name := t.wordNumbers(token.SplitCamel(d.Name))
	t.addPattern(evidencePattern{kind: patternName, intent: intent, words: name, text: d.Name}, vocabulary)
	for _, written := range []string{d.Name, token.JoinWords(d.Name)} { // fooBar and codereview
		if as := t.wordNumbers(written); len(as) > 0 && !slices.Equal(as, name) {
			t.addPattern(evidencePattern{kind: patternExample, intent: intent, words: t.contentWords(as)}, vocabulary)
		}
	}
	for _, text := range sortedUnique(d.Examples) {
		if all := t.wordNumbers(text); len(all) > 0 {
			p := evidencePattern{kind: patternExample, intent: intent, words: t.contentWords(all), text: text}
			p.verb, p.negates = t.readExample(text)
			t.addPattern(p, vocabulary)
		}
	}
	for _, text := range sortedUnique(d.Keywords) {
		if all := t.wordNumbers(text); t.countContent(all) > 0 {
			t.addPattern(evidencePattern{kind: patternKeyword, intent: intent, words: all, text: text}, nil)
		}
	}
	for w := range vocabulary {
		t.model.intentsWith[w] = append(t.model.intentsWith[w], intent)
	}
}

// addPattern adds a pattern. If vocabulary is not nil, the content words of the
// pattern are added to it.
func (t *indexBuilder) addPattern(p evidencePattern, vocabulary map[int32]bool) {
	p.content = t.countContent(p.words)
	t.model.patterns = append(t.model.patterns, p)
	for _, w := range p.words {
		if vocabulary == nil || t.model.info[w].stop {
			continue
		}
		if !vocabulary[w] {
			vocabulary[w] = true
			t.model.info[w].intents++
		}
	}
}

// contentWords removes the stop words, unless there are no other words.
func (t *indexBuilder) contentWords(all []int32) []int32 {
	content := slices.DeleteFunc(slices.Clone(all), func(w int32) bool { return t.model.info[w].stop })
	if len(content) == 0 {
		return all
	}
	return content
}

func (t *indexBuilder) countContent(words []int32) int {
	n := 0
	for _, w := range words {
		if !t.model.info[w].stop {
			n++
		}
	}
	return n
}

// wordNumbers returns the distinct words of a text in order of appearance.
func (t *indexBuilder) wordNumbers(text string) []int32 {
	var all []int32
	for t.tokens.Reset(text); t.tokens.Next(); {
		t.written[string(t.tokens.Word)]++
		if w := t.addWord(t.tokens.Word); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// addWord returns the number of a folded word, a new one if the word is new.
func (t *indexBuilder) addWord(word []byte) int32 {
	t.spellings[string(word)]++
	form := token.FoldNumber(word)
	t.spellings[string(form)]++
	key := token.Stem(form)
	gerund := token.IsGerund(form, key)
	if w, ok := t.model.words[string(key)]; ok {
		t.model.info[w].gerund = t.model.info[w].gerund || gerund
		return w
	}
	w := int32(len(t.model.info))
	t.model.words[string(key)] = w
	first, _ := utf8.DecodeRune(word)
	t.model.intentsWith = append(t.model.intentsWith, nil)
	t.model.info = append(t.model.info, wordInfo{pair: token.IsUnspaced(first) && !chinese.IsWord(word), common: t.model.common.ContainsStem(key), gerund: gerund})
	return w
}

// addDomain adds a domain and the words of its name. Words of names are
// compared without their plural only, so that accounting does not match
// account.
func (t *indexBuilder) addDomain(name string) {
	domain := int32(len(t.model.domains))
	t.model.domains = append(t.model.domains, name)
	seen := [][]int32{}
	for _, written := range []string{token.SplitCamel(name), name, token.JoinWords(name)} {
		all, stop := t.domainNameWords(written)
		for t.tokens.Reset(written); !stop && t.tokens.Next(); {
			t.spellings[string(t.tokens.Word)]++
			t.written[string(t.tokens.Word)]++
			t.model.info[t.addWord(token.FoldNumber(t.tokens.Word))].domain = true
		}
		if len(all) == 0 || slices.ContainsFunc(seen, func(s []int32) bool { return slices.Equal(s, all) }) {
			continue
		}
		seen = append(seen, all)
		t.model.addDomainName(domainName{domain: domain, words: all})
	}
}

// computeWeights sets the weight of every word: a word of fewer intents weighs
// more.
func (t *indexBuilder) computeWeights() {
	n := float64(len(t.model.intents))
	t.model.unknownWeight = math.Log1p(n)
	for i := range t.model.info {
		t.model.info[i].weight = math.Log1p(n / float64(max(t.model.info[i].intents, 1)))
	}
	for i := range t.model.patterns {
		p := &t.model.patterns[i]
		slices.Sort(p.words) // fixed order of summation, for identical results
		for _, w := range p.words {
			if !t.model.info[w].stop {
				p.weight += t.model.info[w].weight
			}
		}
	}
}

// buildPostings indexes every pattern under as few words as guarantee that it
// is found whenever it matters. A name is indexed under each content word, a
// keyword under its rarest word. An example is indexed under its rarest words
// until the remaining ones weigh less than [minCover]: a text that contains
// none of the indexed words is too different. Therefore a word that occurs in
// every example does not lead to all of them.
func (t *indexBuilder) buildPostings() {
	use := make([]int, len(t.model.info)) // number of patterns that contain the word
	for i := range t.model.patterns {
		for _, w := range t.model.patterns[i].words {
			use[w]++
		}
	}
	t.model.posts = make([][]int32, len(t.model.info))
	var byUse []int32
	for i := range t.model.patterns {
		p := &t.model.patterns[i]
		byUse = append(byUse[:0], p.words...)
		slices.SortStableFunc(byUse, func(a, b int32) int { return use[a] - use[b] })
		for _, w := range byUse[:t.postingPrefix(p, byUse)] {
			t.model.posts[w] = append(t.model.posts[w], int32(i))
		}
	}
}

// postingPrefix returns how many of the pattern's words, rarest first, it is
// indexed under.
func (t *indexBuilder) postingPrefix(p *evidencePattern, byUse []int32) int {
	switch {
	case p.kind == patternName:
		return len(byUse)
	case p.kind == patternKeyword, p.content == 0:
		return min(1, len(byUse))
	}
	left := p.weight
	for i, w := range byUse {
		left -= t.model.info[w].weight
		if left < minCover*p.weight {
			return i + 1
		}
	}
	return len(byUse)
}

// patternOverlap counts the words that a text shares with a pattern.
type patternOverlap struct {
	words   int     // shared words
	content int     // content words among them
	weight  float64 // of the content words
}

// tverskyIndex returns Tversky's similarity: the weight of the shared words,
// relative to that of the pattern plus, at a discount, of the words that only
// the text has.
func tverskyIndex(common, text, pattern float64) float64 {
	if common == 0 {
		return 0
	}
	return common / (pattern + extraWordPenalty*max(0, text-common))
}
