package lexical

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Evidence is all evidence in a text, however weak. Use it to select what to
// examine, not to decide: one word in common is evidence here, and two intents
// may have the same words.
type Evidence struct {
	Intents []contract.IntentScore // best first, then by name
	Domains []string               // as in a Prediction
}

// GatherEvidence returns the evidence for each intent: the confidence in it or,
// if greater, the share of its name or of an example that the text contains.
// The statistical model and the rules count alike, and a label counts too.
func (m *Model) GatherEvidence(text string) Evidence {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	best := map[int32]float64{}
	for _, i := range r.candidatePatterns() {
		p := &m.patterns[i]
		o := r.measureOverlap(p)
		r.scorePattern(p, o)
		if like := tverskyIndex(o.weight, r.weight, p.weight); p.kind != patternKeyword && like > 0 {
			best[p.intent] = max(best[p.intent], like)
		}
	}
	for _, intent := range r.scoredIntents {
		best[intent] = max(best[intent], r.scores[intent].confidence)
	}
	if m.statistical != nil {
		var p Prediction
		r.predictIntent(&p)
		for _, a := range append(p.Alternatives, contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence}) {
			if i := m.intentNumber(a.Intent); i >= 0 && a.Confidence > 0 {
				best[int32(i)] = max(best[int32(i)], a.Confidence)
			}
		}
	}
	m.forEachLabelIntent(text, func(intent int32) { best[intent] = max(best[intent], RuleThreshold) })
	var named Prediction
	r.proposeDomains(&named)
	e := Evidence{Domains: named.Domains, Intents: make([]contract.IntentScore, 0, len(best))}
	for intent, score := range best {
		e.Intents = append(e.Intents, contract.IntentScore{Intent: m.intents[intent], Confidence: score})
	}
	slices.SortFunc(e.Intents, func(a, b contract.IntentScore) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), strings.Compare(a.Intent, b.Intent))
	})
	return e
}

// NearestExamples returns up to limit examples of the corpus, most similar
// first, for which keep returns true. Examples with too little overlap are left
// out.
func (m *Model) NearestExamples(text string, limit int, keep func(intent, example string) bool) []string {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	type near struct {
		pattern  *rulePattern
		likeness float64
	}
	var all []near
	for _, i := range r.candidatePatterns() {
		p := &m.patterns[i]
		if p.kind != patternExample || p.text == "" {
			continue
		}
		if o := r.measureOverlap(p); o.content > 0 {
			all = append(all, near{p, tverskyIndex(o.weight, r.weight, p.weight)})
		}
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), strings.Compare(a.pattern.text, b.pattern.text),
			cmp.Compare(a.pattern.intent, b.pattern.intent))
	})
	var texts []string
	for _, n := range all {
		if len(texts) == limit {
			break
		}
		if !slices.Contains(texts, n.pattern.text) && keep(m.intents[n.pattern.intent], n.pattern.text) {
			texts = append(texts, n.pattern.text)
		}
	}
	return texts
}
