package lexical

import (
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

const (
	// minExamples an intent needs for its confidence to be measured, and
	// fewestIntents and fewestTrials a corpus: of fewer than a hundred trials the
	// share of right ones is not known within five points, and what the rules of
	// names and keywords say is worth more.
	minExamples = 5
	minIntents  = 2
	minHeldOut  = 100
	// maxClasses is how many classes and groups the weights can number.
	maxClasses = math.MaxUint16
)

// statisticalModel is the trained part of a model: what there is when a corpus has
// examples enough to learn from and to measure the learning on.
type statisticalModel struct {
	linear          quantizedModel
	calibration     confidenceCalibration
	rejectThreshold float64
	acceptThreshold float64
}

// hasEnoughExamples reports whether the corpus can be learned from: at least nine in ten of
// its intents have the examples. (That one intent of sixty is rare must not cost
// the others their calibration.)
func hasEnoughExamples(docs []IntentDoc) bool {
	full, trials := 0, 0
	for i := range docs {
		n := len(sortedUnique(docs[i].Examples))
		trials += n
		if n >= minExamples {
			full++
		}
	}
	return full >= minIntents && trials >= minHeldOut && 10*full >= 9*len(docs) && 2*len(docs) <= maxClasses
}

// trainStatistical trains on the documents, which are sorted by name; nil when there are
// too few examples.
func trainStatistical(docs []IntentDoc) *statisticalModel {
	if !hasEnoughExamples(docs) {
		return nil
	}
	group, groups := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, group), group, groups)
	whole, trials := crossFit(d)
	s := &statisticalModel{linear: whole.quantize(d.table)}
	s.calibration = fitCalibration(trials)
	s.rejectThreshold, s.acceptThreshold = chooseThresholds(&s.calibration, trials)
	return s
}

// agentFamilies numbers the sets of agents that serve an intent. Intents of one family
// are about one field, and learn from each other's examples what the field is;
// where every intent has its own, or all have one, there is nothing to learn.
func agentFamilies(docs []IntentDoc) (family []int32, families int) {
	known := map[string]int32{}
	for i := range docs {
		key := strings.Join(sortedUnique(docs[i].Agents), "\x00")
		n, ok := known[key]
		if !ok {
			n = int32(len(known))
			known[key] = n
		}
		family = append(family, n)
	}
	if len(known) < 2 || len(known) == len(docs) {
		return make([]int32, len(docs)), 0
	}
	return family, len(known)
}

// trainingTexts lists what there is to learn from, by family and intent: the
// examples, the name, the description of an agent that serves nothing else, and
// what it is not for.
func trainingTexts(docs []IntentDoc, family []int32) []trainingText {
	order := make([]int32, len(docs))
	described := map[string]int{}
	for i := range docs {
		order[i] = int32(i)
		for _, text := range sortedUnique(docs[i].Descriptions) {
			described[text]++
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(family[a] - family[b]) })
	var list []trainingText
	for _, class := range order {
		d := &docs[class]
		list = append(list, trainingText{text: splitCamel(d.Name), class: class, fitOnly: true})
		for _, text := range sortedUnique(d.Descriptions) {
			if described[text] == 1 {
				list = append(list, trainingText{text: text, class: class, fitOnly: true})
			}
		}
		for _, text := range sortedUnique(d.NotFor) {
			list = append(list, trainingText{text: text, class: class, fitOnly: true, negative: true})
		}
		for _, text := range sortedUnique(d.Examples) {
			list = append(list, trainingText{text: text, class: class})
		}
	}
	return list
}

// scoringScratch is the working memory of the trained part.
type scoringScratch struct {
	features featureExtractor
	seen     []uint32 // by feature: turn in which it was seen
	known    []int32
	values   []float32
	scores   []float32
	sums     []int32
}

func (s *statisticalModel) newScratch() scoringScratch {
	places := len(s.linear.bias) + s.linear.families
	return scoringScratch{seen: make([]uint32, s.linear.features.size), scores: make([]float32, places), sums: make([]int32, places)}
}

// scoreText looks up the features that were read and scores them.
func (s *statisticalModel) scoreText(x *scoringScratch, turn uint32) scoredClass {
	x.known = x.known[:0]
	var unknown [2]int
	words := 0
	for block, hashes := range [...][]uint32{x.features.words, x.features.grams} {
		for _, h := range hashes {
			switch f := s.linear.features.lookup(h); {
			case f < 0:
				unknown[block]++
			case x.seen[f] != turn:
				x.seen[f] = turn
				x.known = append(x.known, f)
			}
		}
		if block == 0 {
			words = len(x.known)
		}
	}
	var strange float32
	x.values, strange = weighFeatures(x.values, s.linear.rarity, s.linear.unseenRarity, x.known, words, unknown)
	s.linear.scoreClasses(x.scores, x.sums, x.known, x.values)
	return rankScores(x.scores, s.linear.family, s.linear.families > 0, len(x.known), strange)
}

// predictIntent completes a prediction from what the trained part makes of the text.
func (r *textAnalysis) predictIntent(p *Prediction) {
	s := r.model.statistical
	v := s.scoreText(&r.scratch, r.generation)
	p.Calibrated = true
	if len(r.scratch.known) == 0 {
		return // not a syllable of it is in the corpus
	}
	confidence := s.calibration.confidence(&v.features)
	if !r.isKnownLanguage() {
		confidence = max(0, min(confidence, s.rejectThreshold-1e-4))
	}
	p.BestIntent = r.model.intents[v.best]
	p.Confidence = roundConfidence(confidence)
	rest := 1 - float64(r.scratch.scores[v.best])
	if p.Confidence >= s.rejectThreshold {
		p.Intent = p.BestIntent
		p.DomainOnly = r.nonDomain == 0 && len(p.Domains) > 0
	} else {
		p.Alternatives = append(make([]contract.IntentScore, 0, maxAlternatives), contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence})
	}
	if p.Alternatives == nil {
		p.Alternatives = make([]contract.IntentScore, 0, maxAlternatives)
	}
	// What is left of certainty goes to the others as the linear model shares it.
	probabilities := r.scratch.scores[:len(s.linear.bias)]
	probabilities[v.best] = -1
	for len(p.Alternatives) < maxAlternatives {
		next := 0
		for c, q := range probabilities {
			if q > probabilities[next] {
				next = c
			}
		}
		share := float64(probabilities[next]) / max(rest, 1e-9)
		c := roundConfidence(min(p.Confidence, (1-confidence)*min(1, share)))
		if probabilities[next] <= 0 || c <= 0 {
			break
		}
		probabilities[next] = -1
		p.Alternatives = append(p.Alternatives, contract.IntentScore{Intent: r.model.intents[next], Confidence: c})
	}
}

// isKnownLanguage reports whether the text is in a language of the corpus: of its content
// words the corpus has at least one in three. A text in another language shares
// syllables, names and a word here and there with the examples, but is not
// understood by them.
func (r *textAnalysis) isKnownLanguage() bool {
	known := 0
	for _, w := range r.found {
		if !r.model.info[w].stop {
			known++
		}
	}
	return r.unknown <= 2*known
}

func roundConfidence(p float64) float64 { return math.Round(p*1e4) / 1e4 }
