package lexical

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Evidence is everything in a text that speaks for a label, however weakly. It
// serves to choose what is worth looking at, not to decide: two intents may have
// the same words, and one word in common is evidence here.
type Evidence struct {
	Intents []contract.IntentScore // best first, at the same score by name
	Domains []string               // as in a Prediction
}

// GatherEvidence tells what speaks for which intent: the confidence in it or, where
// that is more, how much of its name or of one of its examples the text has. What
// was learned and what the rules say count alike; a label, which decides nothing,
// is worth looking at.
func (m *Model) GatherEvidence(text string) Evidence {
	r := m.read(text)
	defer m.readers.Put(r)
	best := map[int32]float64{}
	for _, i := range r.reached() {
		p := &m.patterns[i]
		o := r.compare(p)
		r.consider(p, o)
		if like := likeness(o.weight, r.weight, p.weight); p.kind != isKeyword && like > 0 {
			best[p.intent] = max(best[p.intent], like)
		}
	}
	for _, intent := range r.booked {
		best[intent] = max(best[intent], r.scores[intent].confidence)
	}
	if m.stats != nil {
		var p Prediction
		r.predict(&p)
		for _, a := range append(p.Alternatives, contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence}) {
			if i := m.intentNumber(a.Intent); i >= 0 && a.Confidence > 0 {
				best[int32(i)] = max(best[int32(i)], a.Confidence)
			}
		}
	}
	m.labelled(text, func(intent int32) { best[intent] = max(best[intent], RuleThreshold) })
	e := Evidence{Domains: r.domains(), Intents: make([]contract.IntentScore, 0, len(best))}
	for intent, score := range best {
		e.Intents = append(e.Intents, contract.IntentScore{Intent: m.intents[intent], Confidence: score})
	}
	slices.SortFunc(e.Intents, func(a, b contract.IntentScore) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), strings.Compare(a.Intent, b.Intent))
	})
	return e
}
