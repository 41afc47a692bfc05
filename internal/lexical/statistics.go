package lexical

import (
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

const (
	// fewestExamples an intent needs for its confidence to be measured, and
	// fewestIntents and fewestTrials a corpus: of fewer than a hundred trials the
	// share of right ones is not known within five points, and what the rules of
	// names and keywords say is worth more.
	fewestExamples = 5
	fewestIntents  = 2
	fewestTrials   = 100
	// mostClasses is how many classes and groups the weights can number.
	mostClasses = math.MaxUint16
)

// statistics is the trained part of a model: what there is when a corpus has
// examples enough to learn from and to measure the learning on.
type statistics struct {
	model       compact
	calibration calibration
	threshold   float64
	accept      float64
}

// enough reports whether the corpus can be learned from: at least nine in ten of
// its intents have the examples. (That one intent of sixty is rare must not cost
// the others their calibration.)
func enough(docs []IntentDoc) bool {
	full, trials := 0, 0
	for i := range docs {
		n := len(distinct(docs[i].Examples))
		trials += n
		if n >= fewestExamples {
			full++
		}
	}
	return full >= fewestIntents && trials >= fewestTrials && 10*full >= 9*len(docs) && 2*len(docs) <= mostClasses
}

// learn trains on the documents, which are sorted by name; nil when there are
// too few examples.
func learn(docs []IntentDoc) *statistics {
	if !enough(docs) {
		return nil
	}
	group, groups := families(docs)
	d := newDataset(utterances(docs, group), group, groups)
	whole, trials := crossFit(d)
	s := &statistics{model: whole.compact(d.table)}
	s.calibration = calibrate(trials)
	s.threshold, s.accept = thresholds(&s.calibration, trials)
	return s
}

// families numbers the sets of agents that serve an intent. Intents of one family
// are about one field, and learn from each other's examples what the field is;
// where every intent has its own, or all have one, there is nothing to learn.
func families(docs []IntentDoc) (family []int32, families int) {
	known := map[string]int32{}
	for i := range docs {
		key := strings.Join(distinct(docs[i].Agents), "\x00")
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

// utterances lists what there is to learn from, by family and intent: the
// examples, the name, the description of an agent that serves nothing else, and
// what it is not for.
func utterances(docs []IntentDoc, family []int32) []utterance {
	order := make([]int32, len(docs))
	described := map[string]int{}
	for i := range docs {
		order[i] = int32(i)
		for _, text := range distinct(docs[i].Descriptions) {
			described[text]++
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(family[a] - family[b]) })
	var list []utterance
	for _, class := range order {
		d := &docs[class]
		list = append(list, utterance{text: splitCamel(d.Name), class: class, declared: true})
		for _, text := range distinct(d.Descriptions) {
			if described[text] == 1 {
				list = append(list, utterance{text: text, class: class, declared: true})
			}
		}
		for _, text := range distinct(d.NotFor) {
			list = append(list, utterance{text: text, class: class, declared: true, against: true})
		}
		for _, text := range distinct(d.Examples) {
			list = append(list, utterance{text: text, class: class})
		}
	}
	return list
}

// sense is the working memory of the trained part.
type sense struct {
	features features
	turn     []uint32 // by feature: turn in which it was seen
	known    []int32
	values   []float32
	scores   []float32
	sums     []int32
}

func (s *statistics) newSense() sense {
	places := len(s.model.bias) + s.model.groups
	return sense{turn: make([]uint32, s.model.features.size), scores: make([]float32, places), sums: make([]int32, places)}
}

// judge looks up the features that were read and scores them.
func (s *statistics) judge(x *sense, turn uint32) verdict {
	x.known = x.known[:0]
	var unknown [2]int
	words := 0
	for block, hashes := range [...][]uint32{x.features.words, x.features.grams} {
		for _, h := range hashes {
			switch f := s.model.features.find(h); {
			case f < 0:
				unknown[block]++
			case x.turn[f] != turn:
				x.turn[f] = turn
				x.known = append(x.known, f)
			}
		}
		if block == 0 {
			words = len(x.known)
		}
	}
	var strange float32
	x.values, strange = vector(x.values, s.model.rarity, s.model.rarest, x.known, words, unknown)
	s.model.score(x.scores, x.sums, x.known, x.values)
	return judge(x.scores, s.model.group, s.model.groups > 0, len(x.known), strange)
}

// predict completes a prediction from what the trained part makes of the text.
func (r *reading) predict(p *Prediction) {
	s := r.m.stats
	v := s.judge(&r.sense, r.turn)
	p.Calibrated = true
	if len(r.sense.known) == 0 {
		return // not a syllable of it is in the corpus
	}
	confidence := s.calibration.confidence(&v.signs)
	if !r.speaks() {
		confidence = max(0, min(confidence, s.threshold-1e-4))
	}
	p.BestIntent = r.m.intents[v.best]
	p.Confidence = round(confidence)
	rest := 1 - float64(r.sense.scores[v.best])
	if p.Confidence >= s.threshold {
		p.Intent = p.BestIntent
		p.DomainOnly = r.others == 0 && len(p.Domains) > 0
	} else {
		p.Alternatives = append(make([]contract.IntentScore, 0, maxAlternatives), contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence})
	}
	if p.Alternatives == nil {
		p.Alternatives = make([]contract.IntentScore, 0, maxAlternatives)
	}
	// What is left of certainty goes to the others as the linear model shares it.
	probabilities := r.sense.scores[:len(s.model.bias)]
	probabilities[v.best] = -1
	for len(p.Alternatives) < maxAlternatives {
		next := 0
		for c, q := range probabilities {
			if q > probabilities[next] {
				next = c
			}
		}
		share := float64(probabilities[next]) / max(rest, 1e-9)
		c := round(min(p.Confidence, (1-confidence)*min(1, share)))
		if probabilities[next] <= 0 || c <= 0 {
			break
		}
		probabilities[next] = -1
		p.Alternatives = append(p.Alternatives, contract.IntentScore{Intent: r.m.intents[next], Confidence: c})
	}
}

// speaks reports whether the text is in a language of the corpus: of its content
// words the corpus has at least one in three. A text in another language shares
// syllables, names and a word here and there with the examples, but is not
// understood by them.
func (r *reading) speaks() bool {
	known := 0
	for _, w := range r.found {
		if !r.m.info[w].stop {
			known++
		}
	}
	return r.strange <= 2*known
}

func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
