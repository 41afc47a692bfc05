package capabilities

import (
	"fmt"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// The default weights of package matcher, which imports this package, in hundredths.
const (
	scoreIntent    = 50
	scoreDomain    = 30
	scoreDomainMax = 60
	scoreViolation = 20
)

func scoreOf(matchedDomains int) int {
	return scoreIntent + min(matchedDomains*scoreDomain, scoreDomainMax)
}

// bestScore is the highest score of the agent for any request: its intent and all
// of its domains. "*" counts as one more domain.
func bestScore(a *contract.RegistryEntry) int { return scoreOf(len(a.Match.Domains)) }

func (l *linter) isReachable(a *contract.RegistryEntry) bool { return bestScore(a) >= l.threshold }

func (l *linter) findUnreachable() {
	for _, a := range l.Agents {
		if !l.isReachable(a) {
			remedy := ""
			if len(a.Match.Domains) == 0 && scoreOf(1) >= l.threshold {
				remedy = `; declare a domain, or "*" for any`
			}
			l.report([]string{a.ID}, "%s can never be chosen: with %s its best score is %s, below the threshold of %s%s",
				a.ID, countNoun(len(a.Match.Domains), "domain"), formatScore(bestScore(a)), formatScore(l.threshold), remedy)
		}
	}
}

func countNoun(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "one " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// findTies finds agents with the same declarations, limits, requirements and
// priority, so that only their ids decide between them.
func (l *linter) findTies() {
	alike := map[string][]string{}
	for _, a := range l.Agents {
		key := fmt.Sprintf("%q %q %v %q %q %q %q %d",
			sortedCopy(a.Match.Intent), sortedCopy(a.Match.Domains), a.Constraints,
			sortedCopy(a.Requires.Scopes), sortedCopy(a.Requires.Tenants), sortedCopy(a.Requires.DataClasses), sortedCopy(a.AcceptsDataClasses), a.Priority)
		alike[key] = append(alike[key], a.ID)
	}
	for _, agents := range alike {
		if len(agents) > 1 {
			l.report(agents, "%s always tie: they declare the same, so the first by id gets every task; set a priority", joinNames(agents))
		}
	}
}

func sortedCopy(list []string) []string { return slices.Sorted(slices.Values(list)) }

// maxComparisons bounds the compared domains to about a second of work.
const maxComparisons = 10_000_000

// findOutranking finds agents that can precede another eligible agent although the
// request exceeds their own limit: the violation costs 0.2, and a matching domain
// adds 0.3.
func (l *linter) findOutranking() {
	byIntent := map[string][]*contract.RegistryEntry{}
	for _, a := range l.Agents {
		for _, intent := range a.Match.Intent {
			byIntent[intent] = append(byIntent[intent], a)
		}
	}
	work := 0
	for _, a := range l.Agents {
		if a.Constraints.MaxTokens == 0 || bestScore(a)-scoreViolation < l.threshold {
			continue
		}
		beaten := map[string]bool{}
		for _, intent := range a.Match.Intent {
			for _, b := range byIntent[intent] {
				if work += 1 + len(a.Match.Domains) + len(b.Match.Domains); work > maxComparisons {
					l.report(nil, "there are too many agents to compare all of them; the search ended at %s", a.ID)
					return
				}
				if b != a && !beaten[b.ID] && l.canOutscore(a, b) {
					beaten[b.ID] = true
				}
			}
		}
		if len(beaten) > 0 {
			losers := slices.Sorted(maps.Keys(beaten))
			l.report(append([]string{a.ID}, losers...),
				"%s may stand before %s even when a request exceeds its max_tokens: −0.2 weighs less than a matching domain", a.ID, joinNames(losers))
		}
	}
}

// canOutscore reports whether a request exists for which a, with a violation, has
// a higher score than b, which is eligible without one. The score depends only on
// how many domains of the request each agent declares, so all combinations of up to
// three domains declared by both, by one or by none of them are tried.
func (l *linter) canOutscore(a, b *contract.RegistryEntry) bool {
	both, onlyA, onlyB := l.countDomains(a, b)
	for x := range min(both, contract.MaxDomains) + 1 {
		for y := range min(onlyA, contract.MaxDomains-x) + 1 {
			for z := range min(onlyB, contract.MaxDomains-x-y) + 1 {
				for neither := range contract.MaxDomains - x - y - z + 1 {
					violated := scoreOf(x+y+l.countAnyDomain(a, z+neither)) - scoreViolation
					clean := scoreOf(x + z + l.countAnyDomain(b, y+neither))
					if clean >= l.threshold && violated >= l.threshold && violated > clean {
						return true
					}
				}
			}
		}
	}
	return false
}

// countAnyDomain returns 1 if "*" matches a domain that a does not declare by name.
func (l *linter) countAnyDomain(a *contract.RegistryEntry, others int) int {
	if others > 0 && l.domainsOf(a)[contract.AnyDomain] {
		return 1
	}
	return 0
}

// countDomains counts the named domains that both agents declare, and those that
// only one of them declares.
func (l *linter) countDomains(a, b *contract.RegistryEntry) (both, onlyA, onlyB int) {
	for d := range l.domainsOf(a) {
		switch {
		case d == contract.AnyDomain:
		case l.domainsOf(b)[d]:
			both++
		default:
			onlyA++
		}
	}
	for d := range l.domainsOf(b) {
		if d != contract.AnyDomain && !l.domainsOf(a)[d] {
			onlyB++
		}
	}
	return both, onlyA, onlyB
}

func (l *linter) domainsOf(a *contract.RegistryEntry) map[string]bool {
	set, ok := l.domainSets[a.ID]
	if !ok {
		set = make(map[string]bool, len(a.Match.Domains))
		for _, d := range a.Match.Domains {
			set[d] = true
		}
		l.domainSets[a.ID] = set
	}
	return set
}

func (l *linter) findUnusedDomains() {
	used, declared := map[string]bool{}, map[string][]string{}
	for _, a := range l.Agents {
		for _, d := range a.Match.Domains {
			used[d] = used[d] || l.isReachable(a)
			declared[d] = append(declared[d], a.ID)
		}
	}
	for _, d := range l.Domains {
		if !used[d] {
			l.report(declared[d], "domain %q is unused: none of the agents that declare it (%s) can ever be chosen", d, joinNames(declared[d]))
		}
	}
}
