package lexical

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// reading is one text read against a model: the working memory of a call, taken
// from the model's pool. What an earlier text left in its tables counts as
// absent, because it bears an older turn.
type reading struct {
	m    *Model
	text words
	turn uint32

	found   []int32 // distinct words of the model, in the order they come
	weight  float64 // of all content words of the text
	others  int     // how many of them are in no domain's name
	strange int     // how many the model does not have
	label   bool    // it has a label
	bare    bool    // it is a label, and perhaps a domain, and no more: the label is read

	wordTurn    []uint32 // by word: turn in which it was found
	patternTurn []uint32 // by pattern: turn in which it was reached
	patterns    []int32  // reached

	scoreTurn []uint32 // by intent: turn in which score was booked
	scores    []score
	booked    []int32 // intents that have one
	ranked    []score

	domainTurn []uint32 // by domain word
	domainAt   []int32  // which word of the text it first was
	domainSeen []int32  // domain words, in the order they come
	named      []namedDomain

	sense sense // of the trained part
}

type namedDomain struct{ domain, at int32 }

// read reads a text. The caller puts the reading back.
func (m *Model) read(text string) *reading {
	r, ok := m.readers.Get().(*reading)
	if !ok {
		r = &reading{
			m:           m,
			text:        newWords(),
			wordTurn:    make([]uint32, len(m.info)),
			patternTurn: make([]uint32, len(m.patterns)),
			scoreTurn:   make([]uint32, len(m.intents)),
			scores:      make([]score, len(m.intents)),
			domainTurn:  make([]uint32, len(m.domainPosts)),
			domainAt:    make([]int32, len(m.domainPosts)),
		}
		if m.stats != nil {
			r.sense = m.stats.newSense()
		}
	}
	r.read(text)
	return r
}

// read reads labels as what they are made of only where the text has nothing else
// to go by.
func (r *reading) read(text string) {
	r.bare = false
	r.text.labels = r.m.labels
	r.readWords(text)
	if r.label && r.others == 0 {
		r.bare = true
		r.text.labels = nil
		r.readWords(text)
	}
}

func (r *reading) readWords(text string) {
	r.nextTurn()
	at := int32(0)
	if r.m.stats != nil {
		r.sense.features.reset()
	}
	for r.text.reset(text); r.text.next(); at++ {
		r.take(at)
	}
}

func (r *reading) nextTurn() {
	r.turn++
	if r.turn == 0 { // came round: no table may hold a turn that is to come
		for _, table := range [][]uint32{r.wordTurn, r.patternTurn, r.scoreTurn, r.domainTurn, r.sense.turn} {
			clear(table)
		}
		r.turn = 1
	}
	r.found, r.patterns, r.booked, r.ranked = r.found[:0], r.patterns[:0], r.booked[:0], r.ranked[:0]
	r.domainSeen, r.named = r.domainSeen[:0], r.named[:0]
	r.weight, r.others, r.strange, r.label = 0, 0, 0, false
}

// take notes the word just read, the at-th of the text. A word the model does
// not know is counted each time it comes: there is no number to know it by.
// A label names a domain where it has one's words, and says nothing else.
func (r *reading) take(at int32) {
	learned := r.m.stats != nil && r.text.label == nil
	if learned {
		r.sense.features.word(r.text.word)
	}
	form := singular(r.text.word)
	if d, ok := r.m.domainWords[string(form)]; ok && r.domainTurn[d] != r.turn {
		r.domainTurn[d], r.domainAt[d] = r.turn, at
		r.domainSeen = append(r.domainSeen, d)
	}
	if r.text.label != nil {
		r.label = true
		return
	}
	root := stem(form)
	if learned {
		r.sense.features.stem(root)
	}
	w, ok := r.m.words[string(root)]
	if !ok {
		r.weight += r.m.unknownWeight
		r.others++
		r.strange++
		return
	}
	if r.wordTurn[w] == r.turn {
		return
	}
	r.wordTurn[w] = r.turn
	r.found = append(r.found, w)
	if info := &r.m.info[w]; !info.stop {
		r.weight += info.weight
		if !info.domain {
			r.others++
		}
	}
}

// reached returns the patterns the words of the text lead to.
func (r *reading) reached() []int32 {
	for _, w := range r.found {
		for _, p := range r.m.posts[w] {
			if r.patternTurn[p] != r.turn {
				r.patternTurn[p] = r.turn
				r.patterns = append(r.patterns, p)
			}
		}
	}
	return r.patterns
}

// compare counts what the text has of a pattern.
func (r *reading) compare(p *pattern) overlap {
	var o overlap
	for _, w := range p.words {
		if r.wordTurn[w] != r.turn {
			continue
		}
		o.words++
		info := &r.m.info[w]
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

// book keeps the score if it is the best of its intent so far.
func (r *reading) book(s score) {
	if s.confidence <= 0 {
		return
	}
	if r.scoreTurn[s.intent] != r.turn {
		r.scoreTurn[s.intent] = r.turn
		r.booked = append(r.booked, s.intent)
		r.scores[s.intent] = s
	} else if compareScores(s, r.scores[s.intent]) < 0 {
		r.scores[s.intent] = s
	}
}

// best returns the best scores, best first: the winner and its alternatives.
func (r *reading) best() []score {
	for _, intent := range r.booked {
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

// domains returns the domains the text names, in the order it names them.
func (r *reading) domains() []string {
	for _, first := range r.domainSeen {
		for i := range r.m.domainPosts[first] {
			name := &r.m.domainPosts[first][i]
			if at, ok := r.nameIn(name); ok {
				r.named = append(r.named, namedDomain{name.domain, at})
			}
		}
	}
	slices.SortFunc(r.named, func(a, b namedDomain) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(r.m.domains[a.domain], r.m.domains[b.domain]))
	})
	names := make([]string, 0, min(len(r.named), contract.MaxDomains))
	for _, n := range r.named {
		if name := r.m.domains[n.domain]; len(names) < contract.MaxDomains && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// nameIn reports whether the text has every word of the name, and where the
// first of them stands.
func (r *reading) nameIn(name *domainName) (at int32, ok bool) {
	at = r.domainAt[name.words[0]]
	for _, w := range name.words {
		if r.domainTurn[w] != r.turn {
			return 0, false
		}
		at = min(at, r.domainAt[w])
	}
	return at, true
}
