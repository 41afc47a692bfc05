package lexical

import (
	"cmp"
	"slices"
	"strings"
)

// EvidenceKind is the part of the registry that an EvidenceItem comes from.
type EvidenceKind string

// Kinds of evidence.
const (
	EvidenceExample     EvidenceKind = "example"
	EvidenceKeyword     EvidenceKind = "keyword"
	EvidenceName        EvidenceKind = "name" // of the intent
	EvidenceDescription EvidenceKind = "description"
	EvidenceAlias       EvidenceKind = "alias" // of a domain
	EvidenceTypo        EvidenceKind = "typo"  // a word of the registry, one edit away from a word of the text
)

// EvidenceItem is a text of the registry that shares words with a request.
type EvidenceItem struct {
	Kind   EvidenceKind
	Text   string // as declared
	Intent string
	// Strength is the share of the text, by the weight of its words, that the
	// request contains: 0 to 1.
	Strength float64
	// Missing are the content words of Text that the request does not contain.
	Missing []string
}

// ListEvidence returns up to limit texts that speak for the intents for which
// keep returns true, the strongest first.
func (m *Model) ListEvidence(text string, limit int, keep func(intent string) bool) []EvidenceItem {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	type found struct {
		pattern  *rulePattern
		strength float64
	}
	var all []found
	for _, i := range r.candidatePatterns() {
		p := &m.patterns[i]
		if p.text == "" || !keep(m.intents[p.intent]) {
			continue
		}
		if o := r.measureOverlap(p); o.content > 0 {
			all = append(all, found{p, o.weight / p.weight})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.strength, a.strength), cmp.Compare(a.pattern.kind, b.pattern.kind),
			strings.Compare(a.pattern.text, b.pattern.text), cmp.Compare(a.pattern.intent, b.pattern.intent))
	})
	var items []EvidenceItem
	for _, f := range all[:min(len(all), limit)] {
		items = append(items, EvidenceItem{
			Kind: f.pattern.kind.evidence(), Text: f.pattern.text, Intent: m.intents[f.pattern.intent],
			Strength: roundConfidence(f.strength), Missing: r.missingWords(f.pattern.text),
		})
	}
	return items
}

func (k patternKind) evidence() EvidenceKind {
	switch k {
	case patternName:
		return EvidenceName
	case patternKeyword:
		return EvidenceKeyword
	case patternExample:
	}
	return EvidenceExample
}

// missingWords returns the content words of a declared text, folded, that the
// analyzed text does not contain.
func (r *textAnalysis) missingWords(declared string) []string {
	var missing []string
	w := newTokenizer()
	for w.reset(splitCamel(declared)); w.next(); {
		word := string(w.word)
		n, known := r.model.words[string(stemWord(foldNumber(w.word)))]
		if known && !r.model.info[n].stop && r.wordSeen[n] != r.generation && !slices.Contains(missing, word) {
			missing = append(missing, word)
		}
	}
	return missing
}
