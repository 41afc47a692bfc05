package lexical

import (
	"slices"

	"github.com/caprouter/caprouter/internal/lexical/calibration"
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
