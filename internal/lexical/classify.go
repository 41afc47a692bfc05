package lexical

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// RuleThreshold is the confidence from which the rules name an intent.
const RuleThreshold = 0.5

const (
	// maxAlternatives bounds Prediction.Alternatives.
	maxAlternatives = 3
	// maxExampleConfidence bounds the confidence that similarity to an example
	// gives. Only rules that match exactly give 1.
	maxExampleConfidence = 0.95
	// minCover is the share of an example's weight that a text must contain for
	// the two to be compared. A similarity of s requires a cover of at least s,
	// so that no confident match is missed.
	minCover = 0.4
	// extraWordPenalty is the weight of a word that only the text contains,
	// relative to a word that only the example contains, because requests come
	// with context that examples do not have.
	extraWordPenalty = 0.25
	// loneKeywordConfidence is the confidence of a keyword without supporting
	// words: too low to act on, but enough to list the intent as near.
	loneKeywordConfidence = 0.25
)

// Model is a trained corpus. It is immutable and safe for concurrent use.
type Model struct {
	words    map[string]int32 // stem → number
	info     []wordInfo       // by word number, like posts
	posts    [][]int32        // by word: patterns indexed under it
	patterns []rulePattern

	intents       []string
	vocabulary    [][]int32 // by intent: the content words of name and examples, sorted
	unknownWeight float64   // of a word that the corpus does not contain

	domains     []string
	domainWords map[string]int32 // singular → number
	domainPosts [][]domainName   // by number of the first word

	learned []learnedDomains // by intent

	labels *labelSet // nil if there are none

	statistical *statisticalModel // nil if there are too few examples

	report Report

	analyses sync.Pool // of *textAnalysis
}

type wordInfo struct {
	weight  float64
	intents int32 // number of intents whose vocabulary contains it
	stop    bool
	domain  bool // part of a domain name
}

// Prediction is the result of Classify.
type Prediction struct {
	// Intent is contract.Unknown if the confidence is too low. Confidence then
	// refers to the best intent, which is the first of Alternatives.
	Intent     string
	Confidence float64
	// BestIntent is the intent that Confidence refers to, also if it is
	// rejected; "" if there is no evidence for any.
	BestIntent string
	// Calibrated reports that Confidence is a measured probability and not a
	// share of words.
	Calibrated bool
	// Domains are the domains that the text names, in order of appearance, at
	// most contract.MaxDomains; else those with an alias in the text; else the one
	// that examples propose for the intent. DomainOrigin is the same for all, and
	// DomainTexts are the aliases.
	Domains      []string
	DomainOrigin contract.OriginKind
	DomainTexts  [contract.MaxDomains]string
	// Alternatives are the next best intents, best first, at most three.
	Alternatives []contract.IntentScore
	// DomainOnly reports that the text may only name a domain and request
	// nothing: the intent matched by a part of its name that is also a word of
	// a domain name ("databricks" for databricks_review), with at most one
	// other word.
	DomainOnly bool
	// LabelOnly reports that the text is only the name of an intent or agent in
	// the spelling of programs ("code_review"), perhaps with a domain. It
	// counts as a request only if it is the whole text.
	LabelOnly bool
}

// RejectThreshold returns the confidence below which the intent is unknown.
func (m *Model) RejectThreshold() float64 {
	if m.statistical == nil {
		return RuleThreshold
	}
	return m.statistical.rejectThreshold
}

// AcceptThreshold returns the confidence from which at least 98 % of the
// answers are expected to be correct. It is infinite if there is none or the
// model is not calibrated.
func (m *Model) AcceptThreshold() float64 {
	if m.statistical == nil {
		return math.Inf(1)
	}
	return m.statistical.acceptThreshold
}

// Calibrated reports whether there were enough examples to calibrate
// confidences.
func (m *Model) Calibrated() bool { return m.statistical != nil }

// SizeBytes returns the size of the statistical model, without the index of
// names and examples.
func (m *Model) SizeBytes() int {
	if m.statistical == nil {
		return 0
	}
	return m.statistical.linear.sizeBytes()
}

// Classify predicts the intent and domains of a text. It allocates only the
// slices of the prediction.
func (m *Model) Classify(text string) Prediction {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	p := Prediction{Intent: contract.Unknown, LabelOnly: r.labelOnly}
	r.proposeDomains(&p)
	if m.statistical != nil {
		r.predictIntent(&p)
	} else {
		r.matchRules(&p)
	}
	r.learnDomain(&p)
	return p
}

// matchRules completes a prediction by the rules for names, examples and
// keywords.
func (r *textAnalysis) matchRules(p *Prediction) {
	m := r.model
	for _, i := range r.candidatePatterns() {
		p := &m.patterns[i]
		r.scorePattern(p, r.measureOverlap(p))
	}
	best := r.topScores()
	if len(best) == 0 {
		return
	}
	p.BestIntent, p.Confidence = m.intents[best[0].intent], best[0].confidence
	if p.Confidence >= RuleThreshold {
		p.Intent = m.intents[best[0].intent]
		p.DomainOnly = best[0].domainOnly && r.nonDomain < 2
		best = best[1:]
	}
	if len(best) > 0 {
		p.Alternatives = make([]contract.IntentScore, 0, maxAlternatives)
	}
	for _, s := range best[:min(len(best), maxAlternatives)] {
		p.Alternatives = append(p.Alternatives, contract.IntentScore{Intent: m.intents[s.intent], Confidence: s.confidence})
	}
}

// patternOverlap counts the words that a text shares with a pattern.
type patternOverlap struct {
	words, content, domain int // shared words; of these, content words and words of domain names
	weight                 float64
}

// intentScore is the best evidence for one intent.
type intentScore struct {
	intent     int32
	confidence float64
	domainOnly bool
	likeness   float64 // similarity of the text to the pattern
}

// compareScores orders the better score first. If two intents have the same
// confidence, the more similar pattern wins, then the number of the intent,
// which follows its name, so that the order is total.
func compareScores(a, b intentScore) int {
	if c := cmp.Compare(b.confidence, a.confidence); c != 0 {
		return c
	}
	if a.domainOnly != b.domainOnly {
		if b.domainOnly {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.likeness, a.likeness), cmp.Compare(a.intent, b.intent))
}

// scorePattern records the evidence of a pattern, with overlap o, for its
// intent.
func (r *textAnalysis) scorePattern(p *rulePattern, o patternOverlap) {
	s := intentScore{intent: p.intent, likeness: tverskyIndex(o.weight, r.weight, p.weight)}
	switch p.kind {
	case patternName:
		if o.content == 0 && o.words < len(p.words) {
			return // only stop words are shared
		}
		s.confidence = float64(o.words) / float64(len(p.words))
		s.domainOnly = o.words < len(p.words) && o.domain == o.words
	case patternExample:
		s.confidence = r.exampleConfidence(p, o, s.likeness)
	case patternKeyword:
		if o.words < len(p.words) {
			return
		}
		s.confidence = loneKeywordConfidence
		if r.hasOtherIntentWord(p) {
			s.confidence = 1
		}
	}
	s.confidence = math.Round(s.confidence*1e4) / 1e4
	r.recordScore(s)
}

// exampleConfidence returns the confidence that the text asks for the same as
// an example.
func (r *textAnalysis) exampleConfidence(p *rulePattern, o patternOverlap, alike float64) float64 {
	switch {
	case p.content == 0: // only stop words: all of "who are you" must match
		if o.words == len(p.words) && r.weight == 0 {
			return 1
		}
		return 0
	case o.content == p.content:
		return 1
	case o.content < 2: // one shared word is not a paraphrase
		return 0
	}
	return min(maxExampleConfidence, alike)
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

// hasOtherIntentWord reports whether the text contains a word of the intent
// that is not part of the keyword.
func (r *textAnalysis) hasOtherIntentWord(keyword *rulePattern) bool {
	vocabulary := r.model.vocabulary[keyword.intent]
	for _, w := range r.found {
		if r.model.info[w].stop {
			continue
		}
		if _, ok := slices.BinarySearch(vocabulary, w); ok && !slices.Contains(keyword.words, w) {
			return true
		}
	}
	return false
}
