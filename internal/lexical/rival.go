package lexical

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// FindRival returns an intent of other agents than those of the predicted one if the text
// contains a keyword of these agents, and little decides between the two: the predicted
// intent has few examples, none is similar to the text, and the text does not contain the
// word with which the intent's name begins. It returns "" if there is no such intent.
func (m *Model) FindRival(text string, p *Prediction) string {
	best := m.intentNumber(p.BestIntent)
	if best < 0 || p.NearExample || float64(m.report.Intents[best].Examples) >= supportedExamples {
		return ""
	}
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	if containsFirstWord(r, m.intents[best]) {
		return ""
	}
	families := m.statistical.linear.of
	rival := ""
	for _, i := range r.candidatePatterns() {
		k := &m.patterns[i]
		if k.kind != patternKeyword || families[k.intent] == families[best] || !containsKeyword(r, k, best) {
			continue
		}
		name := m.intents[k.intent]
		if slices.ContainsFunc(p.Alternatives, func(a contract.IntentScore) bool { return a.Intent == name }) {
			return name
		}
		if rival == "" {
			rival = name
		}
	}
	return rival
}

// containsKeyword reports whether the text contains a keyword, of which a word speaks for
// none of the intents that the agents of another intent serve.
func containsKeyword(r *textAnalysis, k *evidencePattern, other int) bool {
	return r.measureOverlap(k).words == len(k.words) && slices.ContainsFunc(k.words, func(w int32) bool {
		return !r.model.info[w].stop && !slices.Contains(r.synonymWords, w) && !r.inVocabulary(w, other, true)
	})
}

// containsFirstWord reports whether the text contains the word with which a name begins,
// usually a verb.
func containsFirstWord(r *textAnalysis, name string) bool {
	w := token.NewScanner()
	w.Reset(token.SplitCamel(name))
	if !w.Next() {
		return false
	}
	n, ok := r.model.words[token.StemOf(string(w.Word))]
	return ok && r.wordSeen[n] == r.generation
}
