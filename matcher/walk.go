package matcher

import (
	"iter"
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// listMerge meets every agent that hits, in ordinal order, by merging sorted lists.
type listMerge struct {
	mergedAgent     // the agent last met
	bestRank    int // the highest rank it, or an agent still to come, can have

	x           *Index
	minBase     int // the base score that is a hit
	domainCount int // distinct domains of the query
	domains     [contract.MaxDomains]int32

	lists      [maxLists]postingList // the first n are not empty
	n          int
	exhausted  bool   // a list ended with the agent last met: best is out of date
	implied    traits // what every agent on the lists declares beside
	allAgents  bool   // meet the agents on no list, too
	after, end int32  // the agents still to come have ordinals between these two
}

// mergedAgent is an agent that hits.
type mergedAgent struct {
	ord     int32
	traits  traits
	base    int // its score before violations
	matched int // the query's domains it matches
}

// maxLists is one a domain, "*", broad and the intent.
const maxLists = contract.MaxDomains + 3

// postingList is what is left of the ordinals of the agents with the traits.
type postingList struct {
	ordinals []int32
	traits   traits
}

// chooseLists chooses the lists to walk. An agent can hit
//
//	with nothing at all            hitAt ≤ 0                   every agent
//	with domains alone             domains(asked) ≥ hitAt      the intent's and the domains' lists
//	with the intent alone          Intent ≥ hitAt              the intent's and the pairs' lists
//	with both                      the sum ≥ hitAt             the pairs' lists
//
// and the first of these that holds also covers those below it.
func (w *listMerge) chooseLists(x *Index, q *Query, hitAt int) {
	w.x, w.minBase = x, hitAt
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
	intent := x.intents[q.Intent]
	switch most := x.weights.domainScore(w.domainCount); {
	case most >= hitAt:
		w.allAgents = hitAt <= 0
		w.addList(x.byIntent.row(intent), hasIntent)
		for i, d := range w.domains[:w.domainCount] {
			w.addList(x.byDomain.row(d), hasDomain0<<i)
		}
		w.addList(x.byDomain.row(anyDomain), hasAny)
	case most+x.weights.Intent >= hitAt:
		w.implied = hasIntent
		if x.weights.Intent >= hitAt {
			w.addList(x.byIntent.row(intent), hasIntent)
		}
		pairs := x.pairs.ofIntent(intent)
		for i, d := range w.domains[:w.domainCount] {
			w.addList(pairs.withDomain(d), hasDomain0<<i)
		}
		w.addList(pairs.withAnyDomain(), hasAny)
		w.addList(pairs.withBroadDomain(), isBroad|hasAny|(hasDomain0<<w.domainCount-1)) // all that is asked for, at best
	}
	w.updateBound()
}

// distinctDomains numbers the domains that count.
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

// addList puts the ordinals that are still to come, if there are any, on the lists.
func (w *listMerge) addList(ordinals []int32, t traits) {
	if w.after >= 0 || w.end < int32(len(w.x.agents)) {
		ordinals = ordinalsBetween(ordinals, w.after, w.end)
	}
	if len(ordinals) > 0 {
		w.lists[w.n] = postingList{ordinals, t}
		w.n++
	}
}

// ordinalsBetween cuts sorted ordinals down to those after after and before end.
func ordinalsBetween(ordinals []int32, after, end int32) []int32 {
	from, _ := slices.BinarySearch(ordinals, after+1)
	to, _ := slices.BinarySearch(ordinals, end)
	return ordinals[from:to]
}

// updateBound sees what the agents still to come can reach at best, and ends the walk
// when that is no hit: more traits never lower a score.
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

// nextHit meets the next agent that hits.
func (w *listMerge) nextHit() bool {
	for w.nextAgent() {
		w.base, w.matched = w.x.weights.baseScore(w.traits, w.domainCount)
		if w.base >= w.minBase {
			return true
		}
	}
	return false
}

// nextAgent meets the next agent: the lowest ordinal at the head of a list, with
// the traits of all the lists it heads.
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
	return true
}

// lookupTraits finds which of the query's domains a broad agent declares.
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

// skipRest passes over the agents still to come when all are known to hit with the
// same traits, and returns how many they are; else it does nothing.
func (w *listMerge) skipRest() int {
	if w.exhausted {
		w.updateBound()
	}
	switch {
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
