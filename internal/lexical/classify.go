package lexical

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/calibration"
	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/token"
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
	intents []string // sorted; a class is an index into it
	wordIndex
	domainIndex
	replacementIndex
	labels   *token.Labels // nil if there are none
	common   feature.CommonWords
	notFor   notForWords
	verbatim map[uint64]int32 // hash of the words of an example or name → its intent, -1 if several declare it

	statistical *statisticalModel
	report      Report

	analyses sync.Pool // of *textAnalysis
}

// Prediction is the result of Classify.
type Prediction struct {
	// Intent is contract.Unknown if the confidence is too low. Confidence then
	// refers to the best intent, which is the first of Alternatives.
	Intent     string
	Confidence float64
	// JointConfidence is the confidence in the best intent or one of those that are tied
	// with it, which the same agents serve: in the agents, whichever of them is meant.
	JointConfidence float64
	// BestIntent is the intent that Confidence refers to, also if it is
	// rejected; "" if there is no evidence for any.
	BestIntent string
	// Domains are the domains that the text names, in order of appearance, at
	// most contract.MaxDomains; else those with an alias or a synonym in the text; else the one
	// that examples propose for the intent. DomainOrigin is the same for all, and
	// DomainTexts are the aliases or synonyms.
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
	// Negated reports that the text asks not to serve BestIntent: "don't cancel my order".
	Negated bool

	// NearExample reports that the text is an example of BestIntent, or nearly one.
	NearExample bool
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
	r.applyLearnedDomain(&p)
	return p
}

// statisticalModel is the learned part of a Model: linear model, texts to
// compare with, calibration and thresholds.
type statisticalModel struct {
	linear          quantizedModel
	declared        declaredTexts
	common          feature.CommonWords
	calibration     calibration.Model
	rejectThreshold float64
	acceptThreshold float64
}

// scoringScratch contains the buffers of one scoring call.
type scoringScratch struct {
	features feature.Extractor
	seen     []uint32 // by feature: generation in which it occurred
	known    []int32
	values   []float32
	scores   classScores
	sums     []int32
}

func (s *statisticalModel) newScratch() scoringScratch {
	classes, families := len(s.linear.bias), s.linear.count
	features := feature.Extractor{HasVectors: len(s.linear.vector.scale) > 0}
	if features.HasVectors {
		features.IsDeclared = s.linear.features.Contains // as in training: see declaredNumerals
	}
	return scoringScratch{
		features: features,
		seen:     make([]uint32, s.linear.features.Size), sums: make([]int32, classes+families),
		scores: newClassScores(classes, families),
	}
}

// scoreText looks up the extracted features and scores them.
func (s *statisticalModel) scoreText(x *scoringScratch, generation uint32) scoredClass {
	x.known = x.known[:0]
	var unknown unknownCount
	words := 0
	for block, hashes := range [...][]uint32{x.features.Words, x.features.Ngrams} {
		for _, h := range hashes {
			switch f := s.linear.features.Lookup(h); {
			case f < 0 && block == 1:
				unknown.ngrams++
			case f < 0 && s.common.Contains(h):
				unknown.common++
			case f < 0:
				unknown.words++
			case x.seen[f] != generation:
				x.seen[f] = generation
				x.known = append(x.known, f)
			}
		}
		if block == 0 {
			words = len(x.known)
		}
	}
	var shares wordShares
	x.values, shares = s.linear.weighText(x.values, x.known, words, unknown)
	s.linear.scoreClasses(&x.scores, x.sums, x.known, x.values)
	s.linear.vector.addScores(x.scores.values, &x.features.Vector)
	v := rankScores(&x.scores, &s.linear.classFamilies, len(x.known), &shares)
	addSimilarity(&v.features, s.declared.compare(v.best, s.linear.idf, x.seen, generation, shares.squaredNorm, nil))
	return v
}

// predictIntent sets the intent, its confidence and the alternatives of a prediction. A
// text that is declared verbatim has that intent; else the linear model decides, and its
// confidence is calibrated and lowered if few words support it.
func (r *textAnalysis) predictIntent(p *Prediction) {
	s := r.model.statistical
	if len(s.linear.bias) == 0 {
		return
	}
	verbatim, ok := r.model.verbatim[r.textHash]
	if !ok {
		verbatim = -1
	}
	r.scratch.scores.required = verbatim
	v := s.scoreText(&r.scratch, r.generation)
	if len(r.scratch.known) == 0 {
		return // no feature of the text is known
	}
	if verbatim >= 0 {
		p.NearExample = true
		v.best = int(verbatim)
		confidence := max(s.calibration.Confidence(&v.features), verbatimConfidence, s.rejectThreshold)
		r.completePrediction(p, &v, jointConfidence{calibrated: confidence, factor: 1, share: 1})
		return
	}
	if v.features[calibration.KeywordMatch] > 0 && s.linear.tied {
		v.widenTie(&r.scratch.scores, &s.linear.classFamilies)
		if !r.prefersMember(v.best) {
			v.equalizeTie(&r.scratch.scores, &s.linear.classFamilies)
		}
	}
	joint := r.jointConfidence(&v)
	if slices.Contains(r.notFor, int32(v.best)) {
		joint.factor *= notForFactor
	}
	if r.negator {
		negated := readNegatedWords(r.text)
		if p.Negated = r.model.findNegated(&negated, v.best) != ""; p.Negated {
			joint.factor *= negatedFactor
		}
	}
	p.NearExample = v.features[calibration.NearestExample] >= nearlyExample
	r.completePrediction(p, &v, joint)
}

// jointConfidence returns the confidence in the best intent alone or, if that is too low to
// act on it, in all tied intents if theirs is not. If the tied intents are equally likely,
// there is no confidence in one alone.
func (r *textAnalysis) jointConfidence(v *scoredClass) jointConfidence {
	s := r.model.statistical
	alone := jointConfidence{s.calibration.Confidence(&v.features), r.supportFactor(v.best, &v.features, false), 1}
	least := max(s.rejectThreshold, MinActionConfidence)
	if v.tiedShare >= 1 || alone.total() >= least && !v.equal {
		return alone
	}
	features := v.withTies()
	together := jointConfidence{s.calibration.Confidence(&features), r.supportFactor(v.best, &features, true), 1}
	n, tied := r.tiedRunnersUp(v)
	equal := 1 / float64(1+n)
	switch {
	case v.equal:
		together.share = equal
		return together
	case together.total() < least:
		return alone
	}
	// The best one is no surer than by itself; but the others are no surer than the best one,
	// so that a smaller share than an equal one would lower the confidence in all of them.
	best := float64(r.scratch.scores.values[v.best])
	together.share = min(best/(best+tied), max(alone.total()/together.total(), equal))
	return together
}

// tiedRunnersUp returns how many of the alternatives are tied with the best intent, and their
// probability. They share the joint confidence with it, and those that are not listed have no
// part in it.
func (r *textAnalysis) tiedRunnersUp(v *scoredClass) (n int, probability float64) {
	x, families := &r.scratch.scores, &r.model.statistical.linear.classFamilies
	least := v.leastTied(x)
	for _, c := range x.runnersUp(v.best, maxAlternatives) {
		if x.values[c] >= least && families.tie(int(c), v.best) {
			n, probability = n+1, probability+float64(x.values[c])
		}
	}
	return n, probability
}

// prefersMember reports whether a content word of the text is in the name or the examples of
// some intents of a family, and not of all.
func (r *textAnalysis) prefersMember(class int) bool {
	members := r.model.statistical.linear.membersWith(class)
	return slices.ContainsFunc(r.knownWords, func(w int32) bool {
		n := 0
		for _, c := range members {
			if r.inVocabulary(w, int(c), false) {
				n++
			}
		}
		return !r.model.info[w].stop && n > 0 && n < len(members)
	})
}

// jointConfidence is the confidence in the best intent together with those tied with it.
type jointConfidence struct {
	// calibrated is the confidence that follows from the confidence features. factor lowers
	// it, and that in other intents of the same agents, if the evidence for these agents is
	// weak.
	calibrated, factor float64
	// share is that of the best intent in the confidence; 1 if no other is tied with it.
	share float64
}

func (j *jointConfidence) total() float64 { return j.calibrated * j.factor }

// completePrediction sets intent, confidence and alternatives.
func (r *textAnalysis) completePrediction(p *Prediction, v *scoredClass, joint jointConfidence) {
	p.BestIntent = r.model.intents[v.best]
	p.Confidence, p.JointConfidence = roundConfidence(joint.total()*joint.share), roundConfidence(joint.total())
	p.Alternatives = make([]contract.IntentScore, 0, maxAlternatives)
	if p.JointConfidence >= r.model.statistical.rejectThreshold {
		p.Intent = p.BestIntent
		p.DomainOnly = r.nonDomain == 0 && len(p.Domains) > 0
	} else if p.Confidence > 0 && r.hasKnownContent() {
		p.Alternatives = append(p.Alternatives, contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence})
	}
	if r.hasKnownContent() {
		r.addAlternatives(p, v, joint)
	}
}

// addAlternatives adds the next best intents. The tied ones share the joint confidence as
// they share the probability of the linear model; the others share the remaining
// probability.
func (r *textAnalysis) addAlternatives(p *Prediction, v *scoredClass, joint jointConfidence) {
	x, families := &r.scratch.scores, &r.model.statistical.linear.classFamilies
	leastTied := v.leastTied(x)
	_, tied := r.tiedRunnersUp(v)
	rest := 1 - float64(x.values[v.best])
	if joint.share < 1 {
		rest -= tied
	}
	rest = max(rest, 1e-9)
	for _, next := range x.runnersUp(v.best, maxAlternatives-len(p.Alternatives)) {
		q := float64(x.values[next])
		c := (1 - joint.total()) * min(1, q/rest)
		switch family := families.tie(int(next), v.best); {
		case family && joint.share < 1 && float32(q) >= leastTied:
			c = joint.total() * (1 - joint.share) * q / tied
		case family:
			c = (1 - joint.calibrated) * joint.factor * min(1, q/rest)
		}
		c = roundConfidence(min(p.Confidence, c))
		if q <= 0 || c <= 0 {
			break
		}
		p.Alternatives = append(p.Alternatives, contract.IntentScore{Intent: r.model.intents[next], Confidence: c})
	}
	slices.SortStableFunc(p.Alternatives, func(a, b contract.IntentScore) int { return cmp.Compare(b.Confidence, a.Confidence) })
}

// verbatimConfidence is the least confidence of a text that only one intent
// declares as an example.
const verbatimConfidence = 0.95

func roundConfidence(p float64) float64 { return math.Round(p*1e4) / 1e4 }
