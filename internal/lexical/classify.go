package lexical

import (
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// MinActionConfidence is the confidence from which a prediction is acted on by
// default: it is more probably right than wrong.
const MinActionConfidence = 0.5

const (
	// maxAlternatives bounds Prediction.Alternatives.
	maxAlternatives = 3
	// minCover is the share of an example's weight that a text must contain for
	// the two to be compared. A similarity of s requires a cover of at least s,
	// so that no confident match is missed.
	minCover = 0.4
	// extraWordPenalty is the weight of a word that only the text contains,
	// relative to a word that only the example contains, because requests come
	// with context that examples do not have.
	extraWordPenalty = 0.25
	// minCalibration is the number of held-out predictions from which the
	// calibration depends on them more than on the prior.
	minCalibration = 100
)

// Model is a trained corpus. It is immutable and safe for concurrent use.
type Model struct {
	words    map[string]int32 // stem → number
	info     []wordInfo       // by word number, like posts
	posts    [][]int32        // by word: patterns indexed under it
	patterns []rulePattern

	intents       []string
	intentsWith   [][]int32 // by word: the intents with it in the name or an example, sorted
	unknownWeight float64   // of a word that the corpus does not contain

	domains     []string
	domainWords map[string]int32 // singular → number
	domainPosts [][]domainName   // by number of the first word

	learned []learnedDomains // by intent

	labels *labelSet // nil if there are none

	typos       typoIndex
	synonyms    synonymIndex
	phrases     phraseIndex
	writtenAs   map[string]string // singular that no text contains → the word of the corpus that evidence shows
	common      commonHashes
	notFor      notForWords
	statistical *statisticalModel
	verbatim    map[uint64]int32 // hash of the words of an example or name → its intent, -1 if several declare it

	report Report

	analyses sync.Pool // of *textAnalysis
}

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

// Prediction is the result of Classify.
type Prediction struct {
	// Intent is contract.Unknown if the confidence is too low. Confidence then
	// refers to the best intent, which is the first of Alternatives.
	Intent     string
	Confidence float64
	// BestIntent is the intent that Confidence refers to, also if it is
	// rejected; "" if there is no evidence for any.
	BestIntent string
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
	// Labelled reports that the text contains the name of an intent or agent in that
	// spelling, beside other words.
	Labelled bool
	// BareDomain reports that the text has names of domains, and no other content word
	// that the corpus contains: "the domain is databricks".
	BareDomain bool
}

// RejectThreshold returns the confidence below which the intent is unknown.
func (m *Model) RejectThreshold() float64 {
	return m.statistical.rejectThreshold
}

// AcceptThreshold returns the confidence from which at least 98 % of the
// answers are expected to be correct. It is infinite if there is none or the
// model is not calibrated.
func (m *Model) AcceptThreshold() float64 {
	return m.statistical.acceptThreshold
}

// Calibrated reports whether there were enough examples to calibrate
// confidences.
func (m *Model) Calibrated() bool { return m.report.Trials >= minCalibration }

// SizeBytes returns the size of the statistical model, without the index of
// names and examples.
func (m *Model) SizeBytes() int {
	return m.statistical.linear.sizeBytes() + m.statistical.declared.sizeBytes()
}

// Classify predicts the intent and domains of a text. It allocates only the
// slices of the prediction.
func (m *Model) Classify(text string) Prediction {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	p := Prediction{Intent: contract.Unknown, LabelOnly: r.labelOnly, Labelled: r.hasLabel, BareDomain: r.isBareDomain()}
	r.proposeDomains(&p)
	r.predictIntent(&p)
	r.learnDomain(&p)
	return p
}

// patternOverlap counts the words that a text shares with a pattern.
type patternOverlap struct {
	words, content, domain int // shared words; of these, content words and words of domain names
	weight                 float64
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
