package lexical

import (
	"slices"

	"github.com/caprouter/caprouter/internal/lexical/token"
)

// addLabels collects the labels of the documents, whose index is the number of
// the intent: names of intents and agents in the spelling of programs (code_review,
// codeReview). They are not evidence for what a text asks: people write "review this
// code"; a name copied from a registry comes from a program or from an attacker.
//
// Only names of intents with examples are labels, because an intent without
// examples is recognized by its name in any spelling. A name is not a label if
// an example or keyword contains it in that spelling: the registry then states
// that people write it.
func (t *indexBuilder) addLabels(docs []IntentDoc) {
	plain := map[string]bool{} // names of intents without examples, and of their agents
	for i := range docs {
		if len(docs[i].Examples) == 0 {
			for _, name := range docs[i].names() {
				plain[token.NormalizeLabel(name)] = true
			}
		}
	}
	l := token.NewLabels()
	for i := range docs {
		for _, name := range docs[i].names() {
			if key := token.NormalizeLabel(name); !plain[key] {
				l.Add(key, int32(i))
			}
		}
	}
	w := token.NewScanner()
	w.Labels = l
	for i := range docs {
		for _, text := range slices.Concat(docs[i].Examples, docs[i].Keywords) {
			for w.Reset(text); w.Next(); {
				if w.Label != nil {
					l.Remove(w.Label)
					w.Reset(text) // the same words may contain another label
				}
			}
		}
	}
	if !l.IsEmpty() {
		t.model.labels = l
	}
}

// names returns the names of the intent and its agents.
func (d *IntentDoc) names() []string { return append([]string{d.Name}, d.Agents...) }

// forEachLabelIntent calls use for every intent that a label in the text names.
func (m *Model) forEachLabelIntent(text string, use func(intent int32)) {
	w := token.NewScanner()
	w.Labels = m.labels
	for w.Reset(text); w.Next(); {
		if w.Label == nil {
			continue
		}
		for _, intent := range w.Label.Owners {
			use(intent)
		}
	}
}
