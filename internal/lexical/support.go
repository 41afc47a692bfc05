package lexical

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/calibration"
	"github.com/caprouter/caprouter/internal/lexical/negation"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

const (
	// loneWordFactor is the factor of the confidence in an intent without
	// examples of which the text contains a single word. From supportedExamples
	// examples on, the linear model knows better. commonWordFactor and
	// supportedCommon are the same if the word is a common one, or if there is none.
	loneWordFactor    = 0.75
	supportedExamples = 8.0
	enoughFactor      = 0.9 // if an example or the name is similar
	commonWordFactor  = 0.5
	supportedCommon   = 10.0
	// stopWordsFactor and supportedPhrases are the same for stop words alone, domainFactor
	// and supportedDomains for names of domains; supportedPhrases also for ideographs.
	stopWordsFactor  = 0.2
	domainFactor     = 0.38
	supportedDomains = 50.0
	supportedPhrases = 30.0
	// misspeltSupport is the support that a misspelt word lacks, and misspeltShare the part of
	// it that counts if the word is no common one. pairSupport is the support of a pair of
	// ideographs, several of which make a word.
	misspeltSupport = 0.5
	misspeltShare   = 0.5
	pairSupport     = 0.5
	// minBesideDomain is the number of other content words from which a word of a domain's
	// name counts.
	minBesideDomain = 3
	// minLoneSupport is the support by words that are not common from which they count as
	// a word of the intent alone.
	minLoneSupport = 0.7
	// weakSimilarity is a similarity to the intent's name or an example below which it
	// does not make up for a missing second word.
	weakSimilarity = 0.4
	// nearlyExample is a similarity to an example from which a text has most of its words, and
	// few others: "where is my order 77120".
	nearlyExample = 0.6
	// ownDomainSimilarity is the similarity to an example from which the name of a domain
	// that only the agents of the intent have speaks for it.
	ownDomainSimilarity = 0.3
)

// supportFactor lowers the confidence in an intent with few examples if a
// single word speaks for it, most of all if it is a common word, a word that several
// intents share, or one of a domain's name. "Order a pizza" does not ask for order_status.
// If intents of the same agents are tied and the text has no other words, a word that only they share
// is evidence for those agents: "where is my order?".
func (r *textAnalysis) supportFactor(intent int, f *calibration.Features, tied bool) float64 {
	if f[calibration.KeywordMatch] > 0 || f[calibration.NameShare] > 0.999 {
		return 1
	}
	m := r.model
	examples := float64(m.report.Intents[intent].Examples)
	fewExamples := max(0, 1-examples/supportedExamples)
	s := r.measureSupport(intent, fewExamples, tied)
	enough, factor := supportedCommon, commonWordFactor
	switch {
	case s.content <= 0 && r.unknown > 0:
		return min(1, max(0, m.statistical.rejectThreshold-1e-4)) // no content word is known
	case s.content+r.misspelt == 0:
		enough, factor = supportedPhrases, stopWordsFactor
	case s.content > 0 && f[calibration.NearestExample] >= nearlyExample:
		return 1
	case s.total > 1.999, s.total > 0.999 && tied && r.unknown == 0:
		return 1
	case s.total > 0.999 && r.isEnough(f):
		enough, factor = supportedExamples, enoughFactor
	case !s.words && !s.pairs && fewExamples > 0 && r.namesOwnDomain(intent) && f[calibration.NearestExample] >= ownDomainSimilarity:
		enough, factor = supportedExamples, enoughFactor
	case !s.words && !s.pairs:
		enough, factor = supportedDomains, domainFactor
	case !s.words:
		enough = supportedPhrases
	case s.uncommon > minLoneSupport && !r.isNominal():
		enough, factor = supportedExamples, loneWordFactor
	}
	return 1 - (1-factor)*max(0, 1-examples/enough)
}

// wordSupport is the evidence of the words of a text for an intent. A content word that
// only this intent has counts 1; one that others have as well, or that is misspelt, less.
type wordSupport struct {
	total    float64
	uncommon float64 // by words that are not common
	content  int     // known content words of the text that are spelt correctly, whichever intents have them
	words    bool    // a word of the intent, not only pairs of ideographs
	pairs    bool    // a pair of ideographs of the intent
}

// measureSupport adds up the evidence for an intent or, if it is tied, for the intents of its
// agents. fewExamples is 1 if the intent has no examples, and 0 from supportedExamples on.
func (r *textAnalysis) measureSupport(intent int, fewExamples float64, tied bool) wordSupport {
	s := wordSupport{total: -misspeltSupport * float64(r.misspelt), content: -r.misspelt}
	s.uncommon = misspeltShare * s.total
	for _, w := range r.knownWords {
		info := &r.model.info[w]
		if info.stop {
			continue
		}
		s.content++
		if info.domain && !r.domainCounts(info, fewExamples) || !r.inVocabulary(w, intent, tied) {
			continue
		}
		one := 1 / float64(max(info.intents, 1))
		if tied {
			one = 1 / float64(max(info.families, 1))
		}
		if info.domain {
			one *= fewExamples
		}
		if info.pair {
			one *= pairSupport
		}
		s.words, s.pairs = s.words || !info.pair, s.pairs || info.pair
		s.total += one
		if !info.common {
			s.uncommon += one
		}
	}
	return s
}

// domainCounts reports whether a word of a domain's name counts as one of an intent's name:
// only one agent has it, the intent has few examples, and the text is about more than the
// domain. "Why did the pipeline of the loans fail" asks for pipeline_status, but "what is a
// pipeline" does not.
func (r *textAnalysis) domainCounts(info *wordInfo, fewExamples float64) bool {
	return info.families == 1 && fewExamples > 0 && r.nonDomain >= minBesideDomain
}

// namesOwnDomain reports whether the text has a word of a domain's name that only the
// agents of the intent have, and that is also a word of the intent.
func (r *textAnalysis) namesOwnDomain(intent int) bool {
	return slices.ContainsFunc(r.knownWords, func(w int32) bool {
		info := &r.model.info[w]
		return info.domain && info.families == 1 && r.inVocabulary(w, intent, false)
	})
}

// isNominal reports whether a verb of the registry is the object of another word, which is not
// known: "cancel my booking" does not ask for book_table.
func (r *textAnalysis) isNominal() bool { return r.nominal > 0 && r.unknown > 0 }

// isEnough reports whether a single word suffices: an example is similar, or the text
// has few words that are not known. "Cancel my gym membership" does not ask for
// cancel_order.
func (r *textAnalysis) isEnough(f *calibration.Features) bool {
	return !r.isNominal() && (f[calibration.NearestExample] >= weakSimilarity || f[calibration.NameShare] >= weakSimilarity && r.unknown <= 1)
}

// inVocabulary reports whether the intent, or another of its family, has the word.
func (r *textAnalysis) inVocabulary(w int32, intent int, family bool) bool {
	intents := r.model.intentsWith[w]
	if _, ok := slices.BinarySearch(intents, int32(intent)); ok || !family {
		return ok
	}
	for _, c := range r.model.statistical.linear.membersWith(intent) {
		if _, ok := slices.BinarySearch(intents, c); ok {
			return true
		}
	}
	return false
}

// notForFactor lowers the confidence in an intent if the text contains a word that
// occurs in the not_for texts of its agents and nowhere else in the corpus: "run
// this script" is not for an agent that does not run code, although "script" speaks
// for it. It keeps an intent of which the classifier is sure from being acted on.
const notForFactor = 0.5

// notForWords are the intents that a word speaks against, by stem. They are not
// words of the model, so that they do not make a text better known.
type notForWords map[string][]int32

// newNotForWords collects the words of not_for texts that the corpus contains
// nowhere else. The documents are in the order of the intents.
func (t *indexBuilder) newNotForWords(docs []IntentDoc) notForWords {
	words := notForWords{}
	for i := range docs {
		for _, text := range docs[i].NotFor {
			for t.tokens.Reset(text); t.tokens.Next(); {
				stem := string(token.Stem(token.FoldNumber(t.tokens.Word)))
				if _, known := t.model.words[stem]; !known && !slices.Contains(words[stem], int32(i)) {
					words[stem] = append(words[stem], int32(i))
				}
			}
		}
	}
	return words
}

// notForFactor returns the factor for the confidence in an intent.
func (r *textAnalysis) notForFactor(intent int) float64 {
	if slices.Contains(r.notFor, int32(intent)) {
		return notForFactor
	}
	return 1
}

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

// FindRival returns an intent of other agents than those of the predicted one if the text
// contains a keyword of these agents, and little decides between the two: the predicted
// intent has few examples, none is similar to the text, and the text does not contain the
// word with which the intent's name begins. It returns "" if there is no such intent.
func (m *Model) FindRival(text string, p *Prediction) string {
	best := m.intentNumber(p.BestIntent)
	if best < 0 || p.NearExample || float64(m.report.Intents[best].Examples) >= supportedExamples {
		return ""
	}
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	if containsFirstWord(r, m.intents[best]) {
		return ""
	}
	families := m.statistical.linear.of
	rival := ""
	for _, i := range r.candidatePatterns() {
		k := &m.patterns[i]
		if k.kind != patternKeyword || families[k.intent] == families[best] || !containsKeyword(r, k, best) {
			continue
		}
		name := m.intents[k.intent]
		if slices.ContainsFunc(p.Alternatives, func(a contract.IntentScore) bool { return a.Intent == name }) {
			return name
		}
		if rival == "" {
			rival = name
		}
	}
	return rival
}

// containsKeyword reports whether the text contains a keyword, of which a word speaks for
// none of the intents that the agents of another intent serve.
func containsKeyword(r *textAnalysis, k *evidencePattern, other int) bool {
	return r.measureOverlap(k).words == len(k.words) && slices.ContainsFunc(k.words, func(w int32) bool {
		return !r.model.info[w].stop && !slices.Contains(r.synonymWords, w) && !r.inVocabulary(w, other, true)
	})
}

// containsFirstWord reports whether the text contains the word with which a name begins,
// usually a verb.
func containsFirstWord(r *textAnalysis, name string) bool {
	w := token.NewScanner()
	w.Reset(token.SplitCamel(name))
	if !w.Next() {
		return false
	}
	n, ok := r.model.words[token.StemOf(string(w.Word))]
	return ok && r.wordSeen[n] == r.generation
}
