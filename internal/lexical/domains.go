package lexical

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

const (
	// minDomainExamples is how many examples must support a learned domain.
	minDomainExamples = 2
	// minDomainShare is the share of the examples with a word that must belong to
	// one domain, so that the word proposes the domain.
	minDomainShare = 0.75
	// minNamingShare is the share of an intent's examples that must name a domain,
	// so that the intent proposes it.
	minNamingShare = 0.25
	// minDomainWord is the length of a word that proposes a domain, in characters.
	// Chinese and Japanese words are pairs of characters.
	minDomainWord = 2
)

// domainEvidence is why a text proposes a domain. A lower value precedes: if a
// text names a domain, aliases do not count.
type domainEvidence uint8

const (
	evidenceName domainEvidence = iota
	evidenceAlias
	evidenceLearned // a word that occurs in examples for the domain
)

func (e domainEvidence) origin() contract.OriginKind {
	switch e {
	case evidenceAlias:
		return contract.DomainAlias
	case evidenceLearned:
		return contract.DomainLearned
	case evidenceName:
	}
	return contract.DomainNamed
}

// domainIndex contains the words of the names and aliases of domains, and what the examples
// of intents reveal about domains.
type domainIndex struct {
	domains     []string         // sorted
	domainWords map[string]int32 // singular → number
	stopNames   map[string]int32 // singular of a stop word → number; only for a word that is written as a name
	domainPosts [][]domainName   // by number of the first word
	learned     []learnedDomains // by intent
}

// addDomainName indexes a spelling of the domain under its first word. The other
// words are compared then.
func (m *Model) addDomainName(name domainName) {
	m.domainPosts[name.words[0]] = append(m.domainPosts[name.words[0]], name)
}

// addDomainWord returns the number of a folded word of a domain.
func (m *Model) addDomainWord(form []byte) int32 { return m.addWordOf(m.domainWords, form) }

// addWordOf returns the number of a folded word in domainWords or stopNames.
func (m *Model) addWordOf(words map[string]int32, form []byte) int32 {
	if w, ok := words[string(form)]; ok {
		return w
	}
	w := int32(len(m.domainPosts))
	words[string(form)] = w
	m.domainPosts = append(m.domainPosts, nil)
	return w
}

// domainNameWords returns the distinct words of the name or an alias of a domain. If all of
// them are stop words, stop is true, and a text contains them only if it writes them as
// names: "call IT", but not "repair it".
func (t *indexBuilder) domainNameWords(name string) (words []int32, stop bool) {
	numbers := t.model.domainWords
	if stop = areStopWords(&t.tokens, name); stop {
		numbers = t.model.stopNames
	}
	for t.tokens.Reset(name); t.tokens.Next(); {
		if w := t.model.addWordOf(numbers, token.FoldNumber(t.tokens.Word)); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words, stop
}

var stopWords = sync.OnceValue(token.StopWords)

// areStopWords reports whether the text has words, all of them stop words.
func areStopWords(w *token.Scanner, text string) bool {
	n := 0
	for w.Reset(text); w.Next(); n++ {
		if !stopWords()[string(w.Word)] {
			return false
		}
	}
	return n > 0
}

// IsStopName reports whether a name consists of stop words, so that a text contains it
// whatever it is about.
func IsStopName(name string) bool {
	w := token.NewScanner()
	return areStopWords(&w, token.SplitCamel(name))
}

// addAliases indexes the aliases of the domains. The words of an alias can still
// be evidence for an intent.
func (t *indexBuilder) addAliases(aliases map[string][]string) {
	for domain, name := range t.model.domains {
		for _, alias := range aliases[name] {
			if words, _ := t.domainNameWords(alias); len(words) > 0 {
				t.model.addDomainName(domainName{domain: int32(domain), words: words, evidence: evidenceAlias, text: alias})
			}
		}
	}
}

// proposeDomains sets the domains that the text names or, if there are none, those
// with an alias, or a synonym of the name, in the text. It keeps the learned ones for applyLearnedDomain.
func (r *textAnalysis) proposeDomains(p *Prediction) {
	p.Domains = []string{}
	best := evidenceLearned
	for _, first := range r.domainWords {
		for i := range r.model.domainPosts[first] {
			name := &r.model.domainPosts[first][i]
			if at, ok := r.findDomainName(name); ok {
				named := namedDomain{domain: name.domain, at: at, evidence: name.evidence, text: name.text}
				if synonym, ok := r.findDomainSynonym(name); ok && name.evidence != evidenceLearned {
					named.evidence, named.text, named.synonym = evidenceAlias, synonym, true
				}
				r.namedDomains = append(r.namedDomains, named)
				best = min(best, named.evidence)
			}
		}
	}
	if best == evidenceLearned {
		return
	}
	slices.SortFunc(r.namedDomains, func(a, b namedDomain) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(r.model.domains[a.domain], r.model.domains[b.domain]), strings.Compare(a.text, b.text))
	})
	p.DomainOrigin = best.origin()
	p.Domains = make([]string, 0, min(len(r.namedDomains), contract.MaxDomains))
	for _, n := range r.namedDomains {
		name := r.model.domains[n.domain]
		if n.evidence == best && len(p.Domains) < contract.MaxDomains && !slices.Contains(p.Domains, name) {
			p.DomainTexts[len(p.Domains)] = n.text
			p.Domains = append(p.Domains, name)
		}
	}
}

// findDomainSynonym returns a synonym that the text has instead of a word of the name.
func (s *domainScan) findDomainSynonym(name *domainName) (text string, ok bool) {
	for _, synonym := range s.domainSynonyms {
		if slices.Contains(name.words, synonym.word) {
			return synonym.text, true
		}
	}
	return "", false
}

// applyLearnedDomain sets the domain that the examples propose for an accepted intent, if
// the text proposes none: the domain of its words if they agree, else that of the
// intent. Only a domain of the intent's agents is proposed.
func (r *textAnalysis) applyLearnedDomain(p *Prediction) {
	if len(p.Domains) > 0 || p.Intent == contract.Unknown {
		return
	}
	i, ok := slices.BinarySearch(r.model.intents, p.Intent)
	if !ok {
		return
	}
	learned := &r.model.learned[i]
	domain := int32(-1)
	for _, n := range r.namedDomains {
		switch {
		case !slices.Contains(learned.declared, n.domain):
		case domain < 0:
			domain = n.domain
		case domain != n.domain:
			return // the words disagree
		}
	}
	if domain < 0 {
		domain = learned.domain
	}
	if domain >= 0 {
		p.Domains, p.DomainOrigin = r.model.domains[domain:domain+1:domain+1], contract.DomainLearned
	}
}

// learnedDomains are what the examples of an intent reveal about its domains.
type learnedDomains struct {
	declared []int32 // by the agents of the intent
	domain   int32   // the domain of a text that proposes none; -1 if there is none
}

// domainCounts counts the examples that contain a word.
type domainCounts struct {
	all      int
	byDomain map[int32]int // examples for one domain
}

// learnDomains finds the words and intents whose examples belong to one domain. It
// needs a complete model, because it analyzes the examples with it.
func (t *indexBuilder) learnDomains(docs []IntentDoc) (learned []learnedDomains, words []learnedWord) {
	m := t.model
	r := m.newAnalysis() // not returned to the pool: words are added to the model below
	counts := map[string]*domainCounts{}
	for i := range docs {
		d := &docs[i]
		l := learnedDomains{domain: -1}
		for _, name := range sortedUnique(d.Domains) {
			if domain, ok := slices.BinarySearch(m.domains, name); ok {
				l.declared = append(l.declared, int32(domain))
			}
		}
		usual := int32(-1) // the domain of an example that names none
		if named := r.findDomains(token.SplitCamel(d.Name)); len(named) == 1 && slices.Contains(l.declared, named[0]) {
			usual, l.domain = named[0], named[0]
		} else if len(sortedUnique(d.Domains)) == 1 && len(l.declared) == 1 {
			usual = l.declared[0]
		}
		naming := map[int32]int{}
		examples := sortedUnique(d.Examples)
		for _, text := range examples {
			domain := usual
			switch named := r.findDomains(text); len(named) {
			case 0:
			case 1:
				domain = named[0]
				naming[domain]++
			default:
				domain = -1
			}
			t.countWords(counts, text, domain)
		}
		// If several agents serve the intent, its examples do not decide which one
		// is meant.
		if l.domain < 0 && len(naming) == 1 && len(sortedUnique(d.Agents)) == 1 {
			for domain, n := range naming {
				if n >= minDomainExamples && float64(n) >= minNamingShare*float64(len(examples)) && slices.Contains(l.declared, domain) {
					l.domain = domain
				}
			}
		}
		learned = append(learned, l)
	}
	for _, form := range slices.Sorted(maps.Keys(counts)) {
		c := counts[form]
		for domain, n := range c.byDomain {
			if n >= minDomainExamples && float64(n) >= math.Ceil(minDomainShare*float64(c.all)) {
				words = append(words, learnedWord{form, domain})
			}
		}
	}
	return learned, words
}

// findDomains returns the distinct domains that the text names, or else those
// with an alias in the text.
func (r *textAnalysis) findDomains(text string) (found []int32) {
	var p Prediction
	r.analyze(text)
	r.proposeDomains(&p)
	for _, name := range p.Domains {
		if i, ok := slices.BinarySearch(r.model.domains, name); ok {
			found = append(found, int32(i))
		}
	}
	return found
}

// countWords counts the content words of an example for a domain; -1 if it has
// none. Words of names and aliases of domains are not counted.
func (t *indexBuilder) countWords(counts map[string]*domainCounts, text string, domain int32) {
	seen := map[string]bool{}
	for t.tokens.Reset(text); t.tokens.Next(); {
		form := token.FoldNumber(t.tokens.Word)
		_, ofDomain := t.model.domainWords[string(form)]
		if ofDomain || seen[string(form)] || utf8.RuneCount(form) < minDomainWord {
			continue
		}
		key := string(form)
		seen[key] = true
		if w, ok := t.model.words[string(token.Stem(form))]; ok && t.model.info[w].stop {
			continue
		}
		c := counts[key]
		if c == nil {
			c = &domainCounts{byDomain: map[int32]int{}}
			counts[key] = c
		}
		c.all++
		if domain >= 0 {
			c.byDomain[domain]++
		}
	}
}
