package matcher

import "slices"

// maxPairs is how many (intent, domain) pairs an agent is listed under. One with
// more would take memory quadratic in what it declares; it is listed once an
// intent instead, under the domain broad, and which domains it matches is looked
// up when it is met.
const maxPairs = 256

// pairs lists the agents of each declared (intent, domain) pair. The first two
// pairs of every intent are "*" and broad, declared or not.
type pairs struct {
	first  []uint32 // intent i owns the pairs first[i] … first[i+1]−1
	domain []int32  // of each pair; ascending within an intent
	agents table    // pair → ordinals
}

// of returns the lists of one intent's agents.
func (p *pairs) of(intent int32) intentPairs {
	first, end := p.first[intent], p.first[intent+1]
	return intentPairs{p.domain[first:end], p.agents.start[first : end+1], p.agents.items}
}

// intentPairs is the part of pairs that one intent owns: the ordinals of
// domain[i] are items[start[i]:start[i+1]].
type intentPairs struct {
	domain []int32
	start  []uint32
	items  []int32
}

func (p *intentPairs) at(i int) []int32 { return p.items[p.start[i]:p.start[i+1]] }

// any and broad list the agents that declare "*" and those that are broad.
func (p *intentPairs) any() []int32   { return p.at(0) }
func (p *intentPairs) broad() []int32 { return p.at(1) }

// named lists the agents that declare the domain. The binary search is written
// out without a branch to mispredict: it is where a match spends most of its time.
func (p *intentPairs) named(domain int32) []int32 {
	i, n := 1, len(p.domain)-1 // domain[i] < domain, for broad is
	for n > 1 {
		half := n / 2
		below := int(p.domain[i+half]-domain) >> 63 // all ones when it is, else 0
		i += half & below
		n -= half
	}
	if i++; i == len(p.domain) || p.domain[i] != domain {
		return nil
	}
	return p.at(i)
}

// pairUp lists the pairs of the agents with the given intents and domains.
func pairUp(byIntent, intents, domains *table, domainCount int) pairs {
	paired := pairedDomains(intents, domains)
	total := 0
	for agent := range int32(intents.rows()) {
		total += len(intents.row(agent)) * len(paired.row(agent))
	}
	p := pairs{first: make([]uint32, 1, byIntent.rows()+1), agents: newTable(0, total)}
	next := make([]uint32, domainCount)
	for intent := range int32(byIntent.rows()) {
		p.addIntent(byIntent.row(intent), &paired, next)
	}
	p.domain, p.agents.start = slices.Clip(p.domain), slices.Clip(p.agents.start)
	return p
}

// pairedDomains is domains with the rows of broad agents replaced.
func pairedDomains(intents, domains *table) table {
	t := newTable(domains.rows(), len(domains.items))
	for agent := range int32(domains.rows()) {
		if own := domains.row(agent); len(own)*len(intents.row(agent)) <= maxPairs {
			t.items = append(t.items, own...)
		} else {
			t.items = append(t.items, broad)
		}
		t.endRow()
	}
	return t
}

// addIntent appends the pairs of the next intent: a counting sort of its agents
// by domain. next has a zero for every domain, before and after.
func (p *pairs) addIntent(agents []int32, domains *table, next []uint32) {
	first := len(p.domain)
	p.domain = append(p.domain, anyDomain, broad)
	for _, agent := range agents {
		for _, d := range domains.row(agent) {
			if next[d] == 0 && d > broad {
				p.domain = append(p.domain, d)
			}
			next[d]++
		}
	}
	own := p.domain[first:]
	slices.Sort(own)
	for _, d := range own { // from how many to where the first one goes
		at := len(p.agents.items)
		p.agents.items = p.agents.items[:at+int(next[d])]
		p.agents.endRow()
		next[d] = uint32(at)
	}
	for _, agent := range agents {
		for _, d := range domains.row(agent) {
			p.agents.items[next[d]] = agent
			next[d]++
		}
	}
	for _, d := range own {
		next[d] = 0
	}
	p.first = append(p.first, uint32(len(p.domain)))
}
