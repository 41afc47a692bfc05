package lexical

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// maxJoinedExamples is the number of examples of an intent from which its name
// is not learned as one word as well (codereview).
const maxJoinedExamples = 3

// maxClasses bounds the classes and families, which weights refer to by number.
const maxClasses = math.MaxUint16

// statisticalModel is the learned part of a Model: linear model, texts to
// compare with, calibration and thresholds.
type statisticalModel struct {
	linear          quantizedModel
	declared        declaredTexts
	common          commonHashes
	calibration     confidenceCalibration
	rejectThreshold float64
	acceptThreshold float64
}

// trainStatistical trains on documents sorted by name. It returns the held-out
// predictions too.
func trainStatistical(docs []IntentDoc, domains []string, pace func() bool) (*statisticalModel, []heldOutPrediction) {
	families := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, families.of), families)
	d.pace = pace
	w := newTokenizer()
	for _, name := range domains {
		for w.reset(splitCamel(name)); w.next(); {
			d.flagWord(string(w.word), flagDomain)
		}
	}
	s := &statisticalModel{declared: newDeclaredTexts(d)}
	whole, trials := crossFit(d, &s.declared)
	s.linear = whole.quantize(d.table)
	s.linear.prepare()
	size := newCorpusSize(d)
	s.calibration = fitCalibration(trials, size)
	s.rejectThreshold, s.acceptThreshold = chooseThresholds(&s.calibration, trials, size)
	return s, trials
}

// agentFamilies numbers the sets of agents that serve an intent. Intents of a
// family belong to one field, and share what they learn about it. If every
// intent has its own family or all have the same one, they share nothing.
func agentFamilies(docs []IntentDoc) classFamilies {
	known := map[string]int32{}
	f := classFamilies{}
	for i := range docs {
		key := strings.Join(sortedUnique(docs[i].Agents), "\x00")
		n, ok := known[key]
		if !ok {
			n = int32(len(known))
			known[key] = n
		}
		f.of = append(f.of, n)
		f.tied = f.tied || ok && key != ""
	}
	if len(known) > 1 && len(known) < len(docs) && len(known)+len(docs) <= maxClasses {
		f.count = len(known)
	}
	return f
}

// trainingTexts lists the training texts by family and intent: examples, the
// name, the keywords, the description if its agents serve nothing else, and the
// not_for texts as negatives.
func trainingTexts(docs []IntentDoc, family []int32) []trainingText {
	order := make([]int32, len(docs))
	described := map[string]int{}
	for i := range docs {
		order[i] = int32(i)
		for _, text := range sortedUnique(docs[i].Descriptions) {
			described[text]++
		}
	}
	owners := keywordOwners(docs)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(family[a], family[b]) })
	var list []trainingText
	for _, class := range order {
		d := &docs[class]
		name := splitCamel(d.Name)
		list = append(list, trainingText{text: name, class: class, kind: kindName})
		if joined := joinWords(d.Name); joined != name && len(d.Examples) < maxJoinedExamples {
			list = append(list, trainingText{text: joined, class: class, kind: kindName})
		}
		for _, text := range sortedUnique(d.Keywords) {
			list = append(list, trainingText{text: text, class: class, kind: kindKeyword, exclusive: len(owners[text]) > 0})
		}
		for _, text := range sortedUnique(d.Descriptions) {
			if described[text] == 1 {
				list = append(list, trainingText{text: text, class: class, kind: kindDescription})
			}
		}
		for _, text := range sortedUnique(d.NotFor) {
			list = append(list, trainingText{text: text, class: class, kind: kindNotFor})
		}
		for _, text := range sortedUnique(d.Examples) {
			list = append(list, trainingText{text: text, class: class})
		}
	}
	return list
}

// keywordOwners returns, by keyword, the agents that serve all intents with the
// keyword. If there is none, several agents declare it: as a keyword, or in the name of
// an intent or domain.
func keywordOwners(docs []IntentDoc) map[string][]string {
	owners := map[string][]string{}
	for i := range docs {
		for _, text := range sortedUnique(docs[i].Keywords) {
			if known, ok := owners[text]; ok {
				owners[text] = docs[i].commonAgents(known)
			} else {
				owners[text] = docs[i].commonAgents(nil)
			}
		}
	}
	w := newTokenizer()
	stems := make(map[string][]string, len(owners)) // of the keywords
	for text := range owners {
		for w.reset(text); w.next(); {
			stems[text] = append(stems[text], string(stemWord(foldNumber(w.word))))
		}
	}
	for i := range docs {
		named := map[string]bool{} // stems
		for _, text := range append([]string{docs[i].Name}, docs[i].Domains...) {
			for w.reset(splitCamel(text)); w.next(); {
				named[string(stemWord(foldNumber(w.word)))] = true
			}
		}
		for text, known := range owners {
			unnamed := func(stem string) bool { return !named[stem] }
			if len(known) > 0 && !slices.ContainsFunc(stems[text], unnamed) {
				owners[text] = docs[i].commonAgents(known)
			}
		}
	}
	return owners
}

// commonAgents returns which of the agents serve the intent; all that do if the list is
// nil. An intent without agents is served by one of its own.
func (d *IntentDoc) commonAgents(agents []string) []string {
	own := sortedUnique(d.Agents)
	if len(own) == 0 {
		own = []string{d.Name}
	}
	if agents == nil {
		return own
	}
	return slices.DeleteFunc(agents, func(a string) bool { return !slices.Contains(own, a) })
}

// scoringScratch contains the buffers of one scoring call.
type scoringScratch struct {
	features featureExtractor
	seen     []uint32 // by feature: generation in which it occurred
	known    []int32
	values   []float32
	scores   classScores
	sums     []int32
}

func (s *statisticalModel) newScratch() scoringScratch {
	classes, families := len(s.linear.bias), s.linear.count
	return scoringScratch{
		features: featureExtractor{vectors: len(s.linear.vector.unit) > 0},
		seen:     make([]uint32, s.linear.features.size), sums: make([]int32, classes+families),
		scores: newClassScores(classes, families),
	}
}

// scoreText looks up the extracted features and scores them.
func (s *statisticalModel) scoreText(x *scoringScratch, generation uint32) scoredClass {
	x.known = x.known[:0]
	var unknown unknownCount
	words := 0
	for block, hashes := range [...][]uint32{x.features.words, x.features.grams} {
		for _, h := range hashes {
			switch f := s.linear.features.lookup(h); {
			case f < 0 && block == 1:
				unknown.ngrams++
			case f < 0 && s.common.contains(h):
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
	var mass wordMass
	x.values, mass = s.linear.weighText(x.values, x.known, words, unknown)
	s.linear.scoreClasses(&x.scores, x.sums, x.known, x.values)
	s.linear.vector.addScores(x.scores.places, &x.features.vector)
	v := rankScores(&x.scores, &s.linear.classFamilies, len(x.known), &mass)
	v.features.addLikeness(s.declared.compare(v.best, s.linear.rarity, x.seen, generation, mass.total, nil))
	return v
}

// predictIntent completes a prediction with the statistical model.
func (r *textAnalysis) predictIntent(p *Prediction) {
	s := r.model.statistical
	if len(s.linear.bias) == 0 {
		return
	}
	exact, ok := r.model.verbatim[r.textHash]
	if !ok {
		exact = -1
	}
	r.scratch.scores.required = exact
	v := s.scoreText(&r.scratch, r.generation)
	if len(r.scratch.known) == 0 {
		return // no feature of the text is known
	}
	if exact >= 0 {
		v.best = int(exact)
		r.completePrediction(p, &v, max(s.calibration.confidence(&v.features), verbatimConfidence, s.rejectThreshold), 1, 1)
		return
	}
	if v.features[featKeyword] > 0 && s.linear.tied {
		v.widenTie(&r.scratch.scores, &s.linear.classFamilies)
	}
	confidence, share := s.calibration.confidence(&v.features), 1.0
	factor := r.supportFactor(v.best, &v.features, false)
	if least := max(s.rejectThreshold, MinActionConfidence); v.tiedShare < 1 && confidence*factor < least {
		tied := v.withTies()
		together, support := s.calibration.confidence(&tied), r.supportFactor(v.best, &v.features, true)
		if together*support >= least {
			share = min(v.tiedShare, confidence*factor/(together*support)) // the best one is no surer than by itself
			confidence, factor = together, support
		}
	}
	r.completePrediction(p, &v, confidence, share, factor*r.notForFactor(v.best))
}

// completePrediction sets intent, confidence and alternatives. The confidence is that
// of all tied intents, of which the best one has the given share. The factor lowers it,
// and that in other intents of the same agents, because the evidence for these agents is
// weak.
func (r *textAnalysis) completePrediction(p *Prediction, v *scoredClass, confidence, share, factor float64) {
	s := r.model.statistical
	p.BestIntent = r.model.intents[v.best]
	p.Confidence = roundConfidence(confidence * factor * share)
	p.Alternatives = make([]contract.IntentScore, 0, maxAlternatives)
	if roundConfidence(confidence*factor) >= s.rejectThreshold {
		p.Intent = p.BestIntent
		p.DomainOnly = r.nonDomain == 0 && len(p.Domains) > 0
	} else if p.Confidence > 0 {
		p.Alternatives = append(p.Alternatives, contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence})
	}
	if !r.hasKnownContent() {
		p.Alternatives = p.Alternatives[:0] // nothing is near
		return
	}
	// The tied intents share the confidence as they share the probability of
	// the linear model; the others share the remaining probability.
	x := &r.scratch.scores
	best := float64(x.places[v.best])
	least := tieShare * x.places[v.best]
	if v.wide {
		least = 0
	}
	tied := 0.0 // probability of the other tied intents
	if s.linear.tied {
		for _, c := range s.linear.membersWith(v.best) {
			if q := x.places[c]; int(c) != v.best && q >= least {
				tied += float64(q)
			}
		}
	}
	rest := 1 - best
	if share < 1 {
		rest -= tied
	}
	rest = max(rest, 1e-9)
	for _, next := range x.runnersUp(v.best, maxAlternatives-len(p.Alternatives)) {
		q := float64(x.places[next])
		c := (1 - confidence*factor) * min(1, q/rest)
		switch family := s.linear.tie(int(next), v.best); {
		case family && share < 1 && float32(q) >= least:
			c = confidence * factor * (1 - share) * q / tied
		case family:
			c = (1 - confidence) * factor * min(1, q/rest)
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
