package matcher

import "slices"

// maxPairs bounds the (intent, domain) pairs of an agent, whose memory is quadratic
// in its declarations. An agent with more pairs is broad: it is listed once for each
// intent, under broadDomains, and a match looks up which domains it declares.
const maxPairs = 256

// pairTable contains the posting list of each declared (intent, domain) pair. The
// first two pairs of every intent are those of anyDomain and broadDomains.
type pairTable struct {
	first  []uint32   // intent i owns the pairs first[i] … first[i+1]−1
	domain []int32    // of each pair, ascending within an intent
	agents packedRows // pair → ordinals
}

// ofIntent returns the pairs of one intent.
func (p *pairTable) ofIntent(intent int32) intentPairs {
	first, end := p.first[intent], p.first[intent+1]
	return intentPairs{p.domain[first:end], p.agents.start[first : end+1], p.agents.items}
}

// intentPairs is the part of a pairTable for one intent: the ordinals of domain[i]
// are items[start[i]:start[i+1]].
type intentPairs struct {
	domain []int32
	start  []uint32
	items  []int32
}

func (p *intentPairs) agentsAt(i int) []int32 { return p.items[p.start[i]:p.start[i+1]] }

// withAnyDomain and withBroadDomain list the agents that declare "*" and those that are broad.
func (p *intentPairs) withAnyDomain() []int32   { return p.agentsAt(0) }
func (p *intentPairs) withBroadDomain() []int32 { return p.agentsAt(1) }

// withDomain lists the agents that declare the domain. The binary search is written
// out without a branch to mispredict: it is where a match spends most of its time.
func (p *intentPairs) withDomain(domain int32) []int32 {
	i, n := 1, len(p.domain)-1 // entry 1 is broadDomains, which is less than every domain id
	for n > 1 {
		half := n / 2
		below := int(p.domain[i+half]-domain) >> 63 // all ones when it is, else 0
		i += half & below
		n -= half
	}
	if i++; i == len(p.domain) || p.domain[i] != domain {
		return nil
	}
	return p.agentsAt(i)
}

// buildPairs lists the pairs of the agents with the given intents and domains.
func buildPairs(byIntent, intents, domains *packedRows, domainCount int) pairTable {
	paired := pairedDomains(intents, domains)
	total := 0
	for agent := range int32(intents.rowCount()) {
		total += len(intents.row(agent)) * len(paired.row(agent))
	}
	p := pairTable{first: make([]uint32, 1, byIntent.rowCount()+1), agents: newPackedRows(0, total)}
	next := make([]uint32, domainCount)
	for intent := range int32(byIntent.rowCount()) {
		p.addIntent(byIntent.row(intent), &paired, next)
	}
	p.domain, p.agents.start = slices.Clip(p.domain), slices.Clip(p.agents.start)
	return p
}

// pairedDomains is domains with the rows of broad agents replaced.
func pairedDomains(intents, domains *packedRows) packedRows {
	t := newPackedRows(domains.rowCount(), len(domains.items))
	for agent := range int32(domains.rowCount()) {
		if own := domains.row(agent); len(own)*len(intents.row(agent)) <= maxPairs {
			t.items = append(t.items, own...)
		} else {
			t.items = append(t.items, broadDomains)
		}
		t.endRow()
	}
	return t
}

// addIntent appends the pairs of the next intent: a counting sort of its agents
// by domain. next has a zero for every domain, before and after.
func (p *pairTable) addIntent(agents []int32, domains *packedRows, next []uint32) {
	first := len(p.domain)
	p.domain = append(p.domain, anyDomain, broadDomains)
	for _, agent := range agents {
		for _, d := range domains.row(agent) {
			if next[d] == 0 && d > broadDomains {
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
