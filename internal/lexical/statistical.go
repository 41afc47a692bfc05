package lexical

import (
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

const (
	// Minimum examples of an intent, intents and examples in total for a
	// statistical model. With fewer than a hundred held-out predictions, the
	// share of correct ones has an error of more than five points, and the
	// rules are more reliable.
	minExamples = 5
	minIntents  = 2
	minHeldOut  = 100
	// maxClasses bounds the classes and families, which weights refer to by
	// number.
	maxClasses = math.MaxUint16
)

// statisticalModel is the learned part of a Model: linear model, calibration
// and thresholds.
type statisticalModel struct {
	linear          quantizedModel
	calibration     confidenceCalibration
	rejectThreshold float64
	acceptThreshold float64
}

// hasEnoughExamples reports whether the corpus is large enough for a
// statistical model: at least nine in ten intents have enough examples. One
// rare intent in sixty must not cost the others their calibration.
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

// trainStatistical trains on documents sorted by name. It returns the held-out
// predictions too, and nothing if there are too few examples.
func trainStatistical(docs []IntentDoc) (*statisticalModel, []heldOutPrediction) {
	if !hasEnoughExamples(docs) {
		return nil, nil
	}
	group, groups := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, group), group, groups)
	whole, trials := crossFit(d)
	s := &statisticalModel{linear: whole.quantize(d.table)}
	s.calibration = fitCalibration(trials)
	s.rejectThreshold, s.acceptThreshold = chooseThresholds(&s.calibration, trials)
	return s, trials
}

// agentFamilies numbers the sets of agents that serve an intent. Intents of a
// family belong to one field, and share what they learn about it. If every
// intent has its own family or all have the same one, it returns no families.
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

// trainingTexts lists the training texts by family and intent: examples, the
// name, the description if its agents serve nothing else, and the not_for texts
// as negatives.
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

// scoringScratch contains the buffers of one scoring call.
type scoringScratch struct {
	features featureExtractor
	seen     []uint32 // by feature: generation in which it occurred
	known    []int32
	values   []float32
	scores   []float32
	sums     []int32
}

func (s *statisticalModel) newScratch() scoringScratch {
	places := len(s.linear.bias) + s.linear.families
	return scoringScratch{seen: make([]uint32, s.linear.features.size), scores: make([]float32, places), sums: make([]int32, places)}
}

// scoreText looks up the extracted features and scores them.
func (s *statisticalModel) scoreText(x *scoringScratch, generation uint32) scoredClass {
	x.known = x.known[:0]
	var unknown [2]int
	words := 0
	for block, hashes := range [...][]uint32{x.features.words, x.features.grams} {
		for _, h := range hashes {
			switch f := s.linear.features.lookup(h); {
			case f < 0:
				unknown[block]++
			case x.seen[f] != generation:
				x.seen[f] = generation
				x.known = append(x.known, f)
			}
		}
		if block == 0 {
			words = len(x.known)
		}
	}
	var unknownShare float32
	x.values, unknownShare = weighFeatures(x.values, s.linear.rarity, s.linear.unseenRarity, x.known, words, unknown)
	s.linear.scoreClasses(x.scores, x.sums, x.known, x.values)
	return rankScores(x.scores, s.linear.family, s.linear.families > 0, len(x.known), unknownShare)
}

// predictIntent completes a prediction with the statistical model.
func (r *textAnalysis) predictIntent(p *Prediction) {
	s := r.model.statistical
	v := s.scoreText(&r.scratch, r.generation)
	p.Calibrated = true
	if len(r.scratch.known) == 0 {
		return // no feature of the text is known
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
	// Distribute the remaining probability as the linear model does.
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

// isKnownLanguage reports whether the corpus contains at least one in three
// content words of the text. A text in another language shares syllables, names
// and single words with the examples, and would otherwise be scored by them.
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
