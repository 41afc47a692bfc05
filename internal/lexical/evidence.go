package lexical

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// Evidence is all evidence in a text, however weak. Use it to select what to
// examine, not to decide: one word in common is evidence here, and two intents
// may have the same words.
type Evidence struct {
	Intents []contract.IntentScore // best first, then by name
	Domains []string               // as in a Prediction
}

// minEvidence is the least confidence of an alternative that is evidence.
const minEvidence = 0.3

// GatherEvidence returns the evidence for each intent: the confidence in it or,
// if greater, the share of its name or of an example that the text contains.
// A label counts too.
func (m *Model) GatherEvidence(text string) Evidence {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	best := map[int32]float64{}
	for _, i := range r.candidatePatterns() {
		p := &m.patterns[i]
		o := r.measureOverlap(p)
		if similarity := tverskyIndex(o.weight, r.weight, p.weight); p.kind != patternKeyword && similarity > 0 {
			best[p.intent] = max(best[p.intent], similarity)
		}
	}
	var prediction Prediction
	r.predictIntent(&prediction)
	if !r.hasKnownContent() {
		prediction = Prediction{}
	}
	for _, a := range append(prediction.Alternatives, contract.IntentScore{Intent: prediction.BestIntent, Confidence: prediction.Confidence}) {
		if i := m.intentNumber(a.Intent); i >= 0 && (a.Confidence >= minEvidence || a.Intent == prediction.BestIntent) {
			best[int32(i)] = max(best[int32(i)], a.Confidence)
		}
	}
	m.forEachLabelIntent(text, func(intent int32) { best[intent] = max(best[intent], MinActionConfidence) })
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
		pattern    *evidencePattern
		similarity float64
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
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), strings.Compare(a.pattern.text, b.pattern.text),
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

// hasKnownContent reports whether the corpus contains a content word of the
// text.
func (r *textAnalysis) hasKnownContent() bool {
	return slices.ContainsFunc(r.knownWords, func(w int32) bool { return !r.model.info[w].stop })
}

// isBareDomain reports whether names of domains are all that the corpus contains of the
// text.
func (r *textAnalysis) isBareDomain() bool {
	domains := false
	for _, w := range r.knownWords {
		info := &r.model.info[w]
		if !info.stop && !info.domain {
			return false
		}
		domains = domains || info.domain
	}
	return domains
}

// EvidenceKind is the part of the registry that an EvidenceItem comes from.
type EvidenceKind string

// Kinds of evidence.
const (
	EvidenceExample     EvidenceKind = "example"
	EvidenceKeyword     EvidenceKind = "keyword"
	EvidenceName        EvidenceKind = "name" // of the intent
	EvidenceDescription EvidenceKind = "description"
	EvidenceAlias       EvidenceKind = "alias"   // of a domain
	EvidenceTypo        EvidenceKind = "typo"    // a word of the registry, one edit away from a word of the text
	EvidenceSynonym     EvidenceKind = "synonym" // a word of the registry that means the same as a word of the text
	EvidenceSimilar     EvidenceKind = "similar" // a word of the registry that occurs in the same contexts as a word of the text
	// EvidenceNegation is a word of the intent's name that the text asks not to do. It speaks
	// against the intent.
	EvidenceNegation EvidenceKind = "negation"
	// EvidenceLearned is a word of the text, or a pair, with a weight for the intent.
	EvidenceLearned EvidenceKind = "learned"
)

// EvidenceItem is a text of the registry that shares words with a request.
type EvidenceItem struct {
	Kind   EvidenceKind
	Text   string // as declared
	Intent string
	// Strength is the share of the text, by the weight of its words, that the
	// request contains: 0 to 1. Of a misspelt word, it is the share of its letters, of a
	// synonym synonymStrength, of a similar word the cosine of their vectors, and of a learned
	// word the share of the weights for the intent.
	Strength float64
	// Missing are the content words of Text that the request does not contain.
	Missing []string
	// RequestText is what the request contains instead of Text, if it has a misspelling, a
	// synonym or a similar word.
	RequestText string
}

// ListEvidence returns up to limit texts that speak for the intents for which
// keep returns true, the strongest first.
func (m *Model) ListEvidence(text string, limit int, keep func(intent string) bool) []EvidenceItem {
	r := m.analyzeText(text)
	defer m.analyses.Put(r)
	type found struct {
		pattern  *evidencePattern
		strength float64
	}
	var all []found
	for _, i := range r.candidatePatterns() {
		p := &m.patterns[i]
		if p.text == "" || !keep(m.intents[p.intent]) {
			continue
		}
		if o := r.withoutReplaced(p, r.measureOverlap(p)); o.content > 0 && (p.kind != patternKeyword || o.words == len(p.words)) {
			all = append(all, found{p, o.weight / p.weight})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.strength, a.strength), cmp.Compare(a.pattern.kind, b.pattern.kind),
			strings.Compare(a.pattern.text, b.pattern.text), cmp.Compare(a.pattern.intent, b.pattern.intent))
	})
	var negated []EvidenceItem
	if r.negator {
		negated = m.listNegated(text, limit, keep)
	}
	items := slices.Concat(negated, r.listAliases(keep), r.listReplaced(keep), r.listSimilar(text, keep))
	items = items[:min(len(items), (limit+1)/2)] // the declared texts say more
	for _, f := range all[:min(len(all), limit-len(items))] {
		items = append(items, EvidenceItem{
			Kind: f.pattern.kind.evidence(), Text: f.pattern.text, Intent: m.intents[f.pattern.intent],
			Strength: roundConfidence(f.strength), Missing: r.missingWords(f.pattern.text),
		})
	}
	slices.SortStableFunc(items, func(a, b EvidenceItem) int { return cmp.Compare(b.Strength, a.Strength) })
	return items
}

// withoutReplaced removes the words from the overlap with a pattern of which the text has only
// synonyms or misspellings, which are evidence of their own.
func (r *textAnalysis) withoutReplaced(p *evidencePattern, o patternOverlap) patternOverlap {
	for _, list := range [][]int32{r.synonymWords, r.typoWords} {
		for _, w := range list {
			if slices.Contains(p.words, w) {
				o.words--
				if info := &r.model.info[w]; !info.stop {
					o.content--
					o.weight -= info.weight
				}
			}
		}
	}
	return o
}

// listAliases returns the aliases that propose a domain of the agents of an intent.
func (r *textAnalysis) listAliases(keep func(intent string) bool) (items []EvidenceItem) {
	var p Prediction
	r.namedDomains = r.namedDomains[:0]
	r.proposeDomains(&p)
	if p.DomainOrigin != contract.DomainAlias {
		return nil
	}
	for i, name := range p.Domains {
		domain, _ := slices.BinarySearch(r.model.domains, name)
		if slices.ContainsFunc(r.namedDomains, func(n namedDomain) bool { return n.domain == int32(domain) && n.text == p.DomainTexts[i] && n.synonym }) {
			continue // listed as a synonym
		}
		for k, intent := range r.model.intents {
			if slices.Contains(r.model.learned[k].declared, int32(domain)) && keep(intent) {
				items = append(items, EvidenceItem{Kind: EvidenceAlias, Text: p.DomainTexts[i], Intent: intent, Strength: 1})
			}
		}
	}
	return items
}

// synonymStrength is the strength of a synonym as evidence.
const synonymStrength = 0.9

// listReplaced returns the words of the intents that the text misspells, or has synonyms
// of.
func (r *textAnalysis) listReplaced(keep func(intent string) bool) (items []EvidenceItem) {
	m := r.model
	for _, replaced := range r.replacements {
		n, known := m.words[token.StemOf(replaced.meant)]
		text := cmp.Or(m.writtenAs[replaced.meant], replaced.meant)
		if !known || slices.ContainsFunc(items, func(item EvidenceItem) bool { return item.Text == text }) {
			continue
		}
		strength := synonymStrength
		if replaced.kind == EvidenceTypo {
			strength = 1 - 1/float64(utf8.RuneCountInString(replaced.meant))
		}
		intents := slices.Clone(m.intentsWith[n])
		for _, p := range m.posts[n] {
			intents = append(intents, m.patterns[p].intent)
		}
		slices.Sort(intents)
		for _, k := range slices.Compact(intents) {
			if intent := m.intents[k]; keep(intent) {
				items = append(items, EvidenceItem{
					Kind: replaced.kind, Text: text, Intent: intent, Strength: roundConfidence(strength), RequestText: strings.Clone(replaced.written),
				})
			}
		}
	}
	return items
}

// minSimilarity is the cosine of their vectors from which a word is evidence for a similar
// one: above it, an intent with a similar word is clearly more often the right one.
const minSimilarity = 0.5

// listSimilar returns, for each word of the text that the corpus does not contain, the most
// similar word of each intent.
func (r *textAnalysis) listSimilar(text string, keep func(intent string) bool) (items []EvidenceItem) {
	unknown := r.unknownWords(text)
	if len(unknown) == 0 {
		return nil
	}
	best := map[int32][]EvidenceItem{} // by intent, parallel to unknown
	w := token.NewScanner()
	for i := range r.model.patterns {
		p := &r.model.patterns[i]
		if p.text == "" || !keep(r.model.intents[p.intent]) {
			continue
		}
		if best[p.intent] == nil {
			best[p.intent] = make([]EvidenceItem, len(unknown))
		}
		for w.Reset(token.SplitCamel(p.text)); w.Next(); {
			word := string(w.Word)
			stem := token.Stem(token.FoldNumber(w.Word))
			v, _, ok := synonyms.Vector([]byte(word), stem)
			if !ok || r.model.common.ContainsStem(stem) {
				continue
			}
			for k := range unknown {
				if similarity := roundConfidence(wordvectors.Cosine(&unknown[k].vector, &v)); similarity >= minSimilarity && similarity > best[p.intent][k].Strength {
					best[p.intent][k] = EvidenceItem{
						Kind: EvidenceSimilar, Text: word, Intent: r.model.intents[p.intent], Strength: similarity, RequestText: unknown[k].text,
					}
				}
			}
		}
	}
	for intent := range r.model.intents {
		for _, item := range best[int32(intent)] {
			if item.Text != "" && !slices.ContainsFunc(items, func(o EvidenceItem) bool { return o.Text == item.Text && o.Intent == item.Intent }) {
				items = append(items, item)
			}
		}
	}
	return items
}

// unknownWord is a word of a text that the corpus does not contain.
type unknownWord struct {
	text   string
	vector wordvectors.Vector
}

// unknownWords returns the words that the corpus does not contain and that have a vector,
// without common words and those that count as another word.
func (r *textAnalysis) unknownWords(text string) (words []unknownWord) {
	m := r.model
	if len(m.statistical.linear.vector.scale) == 0 {
		return nil
	}
	w := token.NewScanner()
	w.Labels = r.tokens.Labels
	for w.Reset(text); w.Next(); {
		word := string(w.Word)
		stem := token.Stem(token.FoldNumber(w.Word))
		if _, known := m.words[string(stem)]; known || w.Label != nil || m.common.ContainsStem(stem) {
			continue
		}
		if meant, _ := m.replaceWord([]byte(word), stem); meant != "" {
			continue
		}
		if v, _, ok := synonyms.Vector([]byte(word), stem); ok {
			words = append(words, unknownWord{strings.Clone(w.TextFrom(w.Start())), v})
		}
	}
	return words
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
	w := token.NewScanner()
	for w.Reset(token.SplitCamel(declared)); w.Next(); {
		word := string(w.Word)
		n, known := r.model.words[string(token.Stem(token.FoldNumber(w.Word)))]
		if known && !r.model.info[n].stop && (r.wordSeen[n] != r.generation || slices.Contains(r.synonymWords, n) || slices.Contains(r.typoWords, n)) && !slices.Contains(missing, word) {
			missing = append(missing, word)
		}
	}
	return missing
}
