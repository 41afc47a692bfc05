package lexical

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// RuleThreshold is the confidence below which an intent is not claimed.
const RuleThreshold = 0.5

const (
	// maxAlternatives bounds Prediction.Alternatives.
	maxAlternatives = 3
	// maxExampleConfidence bounds what likeness to an example alone may claim; 1 is for
	// the rules that leave no doubt about the words.
	maxExampleConfidence = 0.95
	// minCover is the share of an example's weight a text must have for the
	// two to be compared at all. A likeness needs at least as much cover as it
	// says, so nothing sure is missed, nor a runner-up that is nearly as good.
	minCover = 0.4
	// extraWordPenalty is how much a word of the text that is not in the example counts
	// against it, beside a word of the example that is not in the text: requests
	// come with a context that examples do not have.
	extraWordPenalty = 0.25
	// loneKeywordConfidence is the confidence a keyword gives with nothing beside it: too
	// little to act on, enough to name the intent as near.
	loneKeywordConfidence = 0.25
)

// Model is a trained corpus. It never changes; any number of goroutines may
// use it.
type Model struct {
	words    map[string]int32 // stem → number
	info     []wordInfo       // by number, as posts
	posts    [][]int32        // the patterns a word leads to
	patterns []rulePattern

	intents        []string
	vocabulary     [][]int32  // by intent: the content words of name and examples, sorted
	unknownWeight  float64    // of a word the corpus does not have
	impliedDomains [][]string // by intent: the domain that goes without saying

	domains     []string
	domainWords map[string]int32 // singular → number
	domainPosts [][]domainName   // by number of the first word

	labels *labelSet // nil: none

	statistical *statisticalModel // nil: too few examples

	analyses sync.Pool // of *reading
}

type wordInfo struct {
	weight  float64
	intents int32 // how many have it in their vocabulary
	stop    bool
	domain  bool // it is a word of a domain's name
}

// Prediction is what a text is taken for.
type Prediction struct {
	// Intent is contract.Unknown when none is sure; Confidence then belongs to
	// the nearest one, which leads Alternatives.
	Intent     string
	Confidence float64
	// Best is the intent Confidence belongs to, also where it is not claimed; ""
	// when nothing speaks for any.
	BestIntent string
	// Calibrated tells that Confidence is a measured probability, not a share of
	// words.
	Calibrated bool
	// Domains are those the text names, in the order it does, at most
	// contract.MaxDomains. Where it names none, it is the one domain that all
	// agents of the intent declare, if it is one; none is none, not
	// contract.Unknown.
	Domains []string
	// Alternatives are the next best intents, best first, at most three.
	Alternatives []contract.IntentScore
	// DomainOnly tells that the text may only name a domain and ask for nothing:
	// Intent rests on a part of its name that is also a word of a domain's name
	// ("databricks" for databricks_review), and at most one other word is there.
	DomainOnly bool
	// LabelOnly tells that the text is the name of an intent or agent as programs
	// spell it ("code_review"), perhaps beside a domain, and nothing that people
	// say: a request where it is all there is, but none beside another.
	LabelOnly bool
}

// RejectThreshold is the confidence below which the intent is unknown.
func (m *Model) RejectThreshold() float64 {
	if m.statistical == nil {
		return RuleThreshold
	}
	return m.statistical.rejectThreshold
}

// AcceptThreshold is the confidence from which at least 98 % of the answers are expected
// to be right, as far as the examples can tell; infinite when none is, or when
// the model is not calibrated.
func (m *Model) AcceptThreshold() float64 {
	if m.statistical == nil {
		return math.Inf(1)
	}
	return m.statistical.acceptThreshold
}

// Calibrated reports whether there were examples enough to measure confidences.
func (m *Model) Calibrated() bool { return m.statistical != nil }

// SizeBytes is the size of what was learned: features, weights and calibration. The
// index of names and examples, which there is without learning too, is not in it.
func (m *Model) SizeBytes() int {
	if m.statistical == nil {
		return 0
	}
	return m.statistical.linear.sizeBytes()
}

// Classify tells what the text asks for. It allocates the slices of the
// prediction and nothing else.
func (m *Model) Classify(text string) Prediction {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	p := Prediction{Intent: contract.Unknown, Domains: r.namedDomains(), LabelOnly: r.labelOnly}
	if m.statistical != nil {
		r.predictIntent(&p)
	} else {
		r.matchRules(&p)
	}
	if len(p.Domains) == 0 && p.Intent != contract.Unknown {
		if i, ok := slices.BinarySearch(m.intents, p.Intent); ok && m.impliedDomains[i] != nil {
			p.Domains = m.impliedDomains[i]
		}
	}
	return p
}

// matchRules completes a prediction by the rules of names, examples and keywords.
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

// patternOverlap is what a text has of a pattern.
type patternOverlap struct {
	words, content, domain int // words of the pattern that the text has; of these, content words and words of domains
	weight                 float64
}

// intentScore is what speaks for one intent.
type intentScore struct {
	intent     int32
	confidence float64
	domainOnly bool
	likeness   float64 // of the text to the pattern that says so
}

// compareScores puts the better score first. Where two intents have the same
// confidence, the one whose pattern has more of the text wins; intents are
// numbered by name, so there is always a winner and always the same one.
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

// scorePattern books what the pattern, of which the text has o, says for its intent.
func (r *textAnalysis) scorePattern(p *rulePattern, o patternOverlap) {
	s := intentScore{intent: p.intent, likeness: tverskyIndex(o.weight, r.weight, p.weight)}
	switch p.kind {
	case patternName:
		if o.content == 0 && o.words < len(p.words) {
			return // "the" of some name says nothing
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

// exampleConfidence is the confidence that the text says what an example says.
func (r *textAnalysis) exampleConfidence(p *rulePattern, o patternOverlap, alike float64) float64 {
	switch {
	case p.content == 0: // only stop words: "who are you" must be all there is
		if o.words == len(p.words) && r.weight == 0 {
			return 1
		}
		return 0
	case o.content == p.content:
		return 1
	case o.content < 2: // one word in common is no paraphrase
		return 0
	}
	return min(maxExampleConfidence, alike)
}

// tverskyIndex is Tversky's index: the weight of the words in common, against that
// of the words only the pattern has and, at a discount, of those only the text
// has.
func tverskyIndex(common, text, pattern float64) float64 {
	if common == 0 {
		return 0
	}
	return common / (pattern + extraWordPenalty*max(0, text-common))
}

// hasOtherIntentWord reports whether the text has a word of the keyword's intent that is
// not the keyword itself.
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
