package matcher

import (
	"iter"
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// listMerge visits all hits in ordinal order by merging posting lists.
type listMerge struct {
	mergedAgent     // the current agent
	bestRank    int // the highest rank that the current or a following agent can have

	x           *Index
	minBase     int // least base score of a hit
	domainCount int // distinct domains of the query
	domains     [contract.MaxDomains]int32
	tied        [MaxTied]int32 // intents that an agent must declare beside that of the query
	tiedCount   int

	lists      [maxLists]postingList // the first n are not empty
	n          int
	exhausted  bool   // a list ended with the current agent, so bestRank is out of date
	implied    traits // traits of all agents on the lists, in addition to those of the lists
	allAgents  bool   // visit agents without a list as well
	after, end int32  // exclusive bounds of the ordinals of following agents
}

// mergedAgent is an agent with the result of merging its lists.
type mergedAgent struct {
	ord     int32
	traits  traits
	base    int // score before violations
	matched int // domains of the query that it matches
}

// maxLists is one for each domain, "*", broadDomains and the intent.
const maxLists = contract.MaxDomains + 3

// postingList contains the remaining ordinals of the agents with the traits.
type postingList struct {
	ordinals []int32
	traits   traits
}

// chooseLists chooses the posting lists to merge. The first condition that holds also
// covers the conditions below it:
//
//	an agent is a hit with    if                                merge
//	nothing                   minBase ≤ 0                       all agents
//	domains alone             domainScore(all) ≥ minBase        lists of the intent and the domains
//	the intent alone          Intent ≥ minBase                  lists of the intent and the pairs
//	both                      the sum ≥ minBase                 lists of the pairs
func (w *listMerge) chooseLists(x *Index, q *Query, minBase int) {
	w.x, w.minBase = x, minBase
	w.after, w.end = -1, int32(len(x.agents))
	if q.Only != "" {
		ord, ok := x.findOrdinal(q.Only)
		if !ok {
			return
		}
		w.after, w.end = ord-1, ord+1
	}
	for _, name := range distinctDomains(q.Domains) {
		w.domains[w.domainCount] = x.domains[name]
		w.domainCount++
	}
	for _, name := range q.Tied[:min(len(q.Tied), MaxTied)] {
		w.tied[w.tiedCount] = x.intents[name]
		w.tiedCount++
	}
	intent := x.intents[q.Intent]
	switch most := x.weights.domainScore(w.domainCount); {
	case most >= minBase:
		w.allAgents = minBase <= 0
		w.addList(x.byIntent.row(intent), hasIntent)
		for i, d := range w.domains[:w.domainCount] {
			w.addList(x.byDomain.row(d), hasDomain0<<i)
		}
		w.addList(x.byDomain.row(anyDomain), hasAny)
	case most+x.weights.Intent >= minBase:
		w.implied = hasIntent
		if x.weights.Intent >= minBase {
			w.addList(x.byIntent.row(intent), hasIntent)
		}
		pairs := x.pairs.ofIntent(intent)
		for i, d := range w.domains[:w.domainCount] {
			w.addList(pairs.withDomain(d), hasDomain0<<i)
		}
		w.addList(pairs.withAnyDomain(), hasAny)
		w.addList(pairs.withBroadDomain(), isBroad|hasAny|(hasDomain0<<w.domainCount-1)) // at best all domains of the query
	}
	w.updateBound()
}

// distinctDomains enumerates the domains that count.
func distinctDomains(domains []string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		n := 0
		for i, name := range domains {
			if n == contract.MaxDomains {
				return
			}
			if slices.Contains(domains[:i], name) {
				continue
			}
			if !yield(n, name) {
				return
			}
			n++
		}
	}
}

// addList adds the ordinals within the bounds, if there are any.
func (w *listMerge) addList(ordinals []int32, t traits) {
	if w.after >= 0 || w.end < int32(len(w.x.agents)) {
		ordinals = ordinalsBetween(ordinals, w.after, w.end)
	}
	if len(ordinals) > 0 {
		w.lists[w.n] = postingList{ordinals, t}
		w.n++
	}
}

// ordinalsBetween returns the sorted ordinals between the exclusive bounds.
func ordinalsBetween(ordinals []int32, after, end int32) []int32 {
	from, _ := slices.BinarySearch(ordinals, after+1)
	to, _ := slices.BinarySearch(ordinals, end)
	return ordinals[from:to]
}

// updateBound computes the highest rank of the following agents, and ends the merge if
// that is no hit. The bound is correct because more traits never lower a score.
func (w *listMerge) updateBound() {
	t := w.implied
	for i := range w.n {
		t |= w.lists[i].traits
	}
	base, matched := w.x.weights.baseScore(t, w.domainCount)
	if base < w.minBase {
		w.n = 0
	}
	w.bestRank, w.exhausted = combineRank(base, matched), false
}

// nextHit advances to the next hit.
func (w *listMerge) nextHit() bool {
	for w.nextAgent() {
		w.base, w.matched = w.x.weights.baseScore(w.traits, w.domainCount)
		if w.base >= w.minBase {
			return true
		}
	}
	return false
}

// nextAgent advances to the lowest ordinal at the head of a list, and combines the
// traits of all lists with that head.
func (w *listMerge) nextAgent() bool {
	if w.exhausted {
		w.updateBound()
	}
	switch {
	case w.allAgents:
		w.after++
		w.ord = w.after
		if w.ord >= w.end {
			return false
		}
	case w.n == 0:
		return false
	default:
		w.ord = w.lists[0].ordinals[0]
		for i := 1; i < w.n; i++ {
			w.ord = min(w.ord, w.lists[i].ordinals[0])
		}
	}

	w.traits = w.implied
	for i := w.n - 1; i >= 0; i-- {
		l := &w.lists[i]
		if l.ordinals[0] != w.ord {
			continue
		}
		w.traits |= l.traits
		if l.ordinals = l.ordinals[1:]; len(l.ordinals) == 0 {
			w.n--
			w.lists[i] = w.lists[w.n]
			w.exhausted = true
		}
	}
	if w.traits&isBroad != 0 {
		w.traits = w.implied | w.lookupTraits(w.ord)
	}
	if w.traits&hasIntent != 0 && !w.declaresTied(w.ord) {
		w.traits &^= hasIntent
	}
	return true
}

// declaresTied reports whether the agent declares all tied intents.
func (w *listMerge) declaresTied(ord int32) bool {
	for _, intent := range w.tied[:w.tiedCount] {
		if _, ok := slices.BinarySearch(w.x.byIntent.row(intent), ord); !ok {
			return false
		}
	}
	return true
}

// lookupTraits returns which domains of the query a broad agent declares.
func (w *listMerge) lookupTraits(ord int32) traits {
	declares := func(domain int32) bool {
		_, ok := slices.BinarySearch(w.x.byDomain.row(domain), ord)
		return ok
	}
	var t traits
	for i, d := range w.domains[:w.domainCount] {
		if declares(d) {
			t |= hasDomain0 << i
		}
	}
	if declares(anyDomain) {
		t |= hasAny
	}
	return t
}

// skipRest ends the merge if all following agents are hits with the same traits, and
// returns their number. Otherwise it has no effect and returns 0.
func (w *listMerge) skipRest() int {
	if w.exhausted {
		w.updateBound()
	}
	switch {
	case w.tiedCount > 0: // the traits of the following agents differ
	case w.allAgents && w.n == 0:
		n := int(w.end - w.after - 1)
		w.after = w.end - 1
		return n
	case !w.allAgents && w.n == 1 && w.lists[0].traits&isBroad == 0:
		w.n = 0
		return len(w.lists[0].ordinals)
	}
	return 0
}
