package lexical

import "slices"

// textAnalysis is the state of one call: a text that is matched against a
// model. It comes from the model's pool and is owned by one goroutine. Entries
// of earlier texts are recognized by an older generation, so that nothing needs
// clearing.
type textAnalysis struct {
	model      *Model
	tokens     tokenizer
	generation uint32

	found     []int32 // distinct known words, in order of appearance
	weight    float64 // total weight of the content words
	nonDomain int     // content words that are in no domain name
	unknown   int     // words that the model does not contain
	hasLabel  bool    // the text contains a name label
	labelOnly bool    // the text is only a label, perhaps with a domain; its words are read

	wordSeen    []uint32 // by word: generation in which it was found
	patternSeen []uint32 // by pattern: generation in which it became a candidate
	patterns    []int32  // candidates

	scoreSeen     []uint32 // by intent: generation of its entry in scores
	scores        []intentScore
	scoredIntents []int32 // intents with an entry in scores
	ranked        []intentScore

	domainWordSeen []uint32 // by domain word: generation
	domainWordAt   []int32  // position of its first occurrence
	domainWords    []int32  // in order of appearance
	named          []namedDomain

	scratch scoringScratch // of the statistical model
}

type namedDomain struct {
	domain, at int32
	evidence   domainEvidence
	text       string // of an alias
}

// analyzeText analyzes a text. The caller returns the analysis to the pool.
func (m *Model) analyzeText(text string) *textAnalysis {
	r, ok := m.analyses.Get().(*textAnalysis)
	if !ok {
		r = &textAnalysis{
			model:          m,
			tokens:         newTokenizer(),
			wordSeen:       make([]uint32, len(m.info)),
			patternSeen:    make([]uint32, len(m.patterns)),
			scoreSeen:      make([]uint32, len(m.intents)),
			scores:         make([]intentScore, len(m.intents)),
			domainWordSeen: make([]uint32, len(m.domainPosts)),
			domainWordAt:   make([]int32, len(m.domainPosts)),
		}
		if m.statistical != nil {
			r.scratch = m.statistical.newScratch()
		}
	}
	r.analyze(text)
	return r
}

// analyze splits labels into words only if the text contains nothing else that
// counts.
func (r *textAnalysis) analyze(text string) {
	r.labelOnly = false
	r.tokens.labels = r.model.labels
	r.scanWords(text)
	if r.hasLabel && r.nonDomain == 0 {
		r.labelOnly = true
		r.tokens.labels = nil
		r.scanWords(text)
	}
}

func (r *textAnalysis) scanWords(text string) {
	r.resetState()
	at := int32(0)
	if r.model.statistical != nil {
		r.scratch.features.reset()
	}
	for r.tokens.reset(text); r.tokens.next(); at++ {
		r.addWord(at)
	}
}

func (r *textAnalysis) resetState() {
	r.generation++
	if r.generation == 0 { // wrapped around: clear stamps of the first cycle
		for _, table := range [][]uint32{r.wordSeen, r.patternSeen, r.scoreSeen, r.domainWordSeen, r.scratch.seen} {
			clear(table)
		}
		r.generation = 1
	}
	r.found, r.patterns, r.scoredIntents, r.ranked = r.found[:0], r.patterns[:0], r.scoredIntents[:0], r.ranked[:0]
	r.domainWords, r.named = r.domainWords[:0], r.named[:0]
	r.weight, r.nonDomain, r.unknown, r.hasLabel = 0, 0, 0, false
}

// addWord records the current word, which is at position at. An unknown word
// counts each time it occurs, because it has no number. A label can name a
// domain, and is ignored otherwise.
func (r *textAnalysis) addWord(at int32) {
	learned := r.model.statistical != nil && r.tokens.current == nil
	if learned {
		r.scratch.features.addWord(r.tokens.word)
	}
	form := foldNumber(r.tokens.word)
	if d, ok := r.model.domainWords[string(form)]; ok && r.domainWordSeen[d] != r.generation {
		r.domainWordSeen[d], r.domainWordAt[d] = r.generation, at
		r.domainWords = append(r.domainWords, d)
	}
	if r.tokens.current != nil {
		r.hasLabel = true
		return
	}
	root := stemWord(form)
	if learned {
		r.scratch.features.addStem(root)
	}
	w, ok := r.model.words[string(root)]
	if !ok {
		r.weight += r.model.unknownWeight
		r.nonDomain++
		r.unknown++
		return
	}
	if r.wordSeen[w] == r.generation {
		return
	}
	r.wordSeen[w] = r.generation
	r.found = append(r.found, w)
	if info := &r.model.info[w]; !info.stop {
		r.weight += info.weight
		if !info.domain {
			r.nonDomain++
		}
	}
}

// candidatePatterns returns the patterns that share an indexed word with the
// text.
func (r *textAnalysis) candidatePatterns() []int32 {
	for _, w := range r.found {
		for _, p := range r.model.posts[w] {
			if r.patternSeen[p] != r.generation {
				r.patternSeen[p] = r.generation
				r.patterns = append(r.patterns, p)
			}
		}
	}
	return r.patterns
}

// measureOverlap counts which words of the pattern the text contains.
func (r *textAnalysis) measureOverlap(p *rulePattern) patternOverlap {
	var o patternOverlap
	for _, w := range p.words {
		if r.wordSeen[w] != r.generation {
			continue
		}
		o.words++
		info := &r.model.info[w]
		if info.domain {
			o.domain++
		}
		if !info.stop {
			o.content++
			o.weight += info.weight
		}
	}
	return o
}

// recordScore keeps the score if it is the best of its intent so far.
func (r *textAnalysis) recordScore(s intentScore) {
	if s.confidence <= 0 {
		return
	}
	if r.scoreSeen[s.intent] != r.generation {
		r.scoreSeen[s.intent] = r.generation
		r.scoredIntents = append(r.scoredIntents, s.intent)
		r.scores[s.intent] = s
	} else if compareScores(s, r.scores[s.intent]) < 0 {
		r.scores[s.intent] = s
	}
}

// topScores returns the best scores in order: the winner and its alternatives.
func (r *textAnalysis) topScores() []intentScore {
	for _, intent := range r.scoredIntents {
		s := r.scores[intent]
		at, _ := slices.BinarySearchFunc(r.ranked, s, compareScores)
		if at > maxAlternatives {
			continue
		}
		r.ranked = slices.Insert(r.ranked, at, s)
		r.ranked = r.ranked[:min(len(r.ranked), maxAlternatives+1)]
	}
	return r.ranked
}

// findDomainName reports whether the text contains every word of the name, and
// the position of the first one.
func (r *textAnalysis) findDomainName(name *domainName) (at int32, ok bool) {
	at = r.domainWordAt[name.words[0]]
	for _, w := range name.words {
		if r.domainWordSeen[w] != r.generation {
			return 0, false
		}
		at = min(at, r.domainWordAt[w])
	}
	return at, true
}
