package matcher

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Index answers matches over one registry. It is never changed after Build and
// safe for concurrent use.
type Index struct {
	weights   Weights
	threshold int

	agents   []*contract.RegistryEntry // by ordinal
	profiles []profile                 // by ordinal
	byID     []int32                   // ordinals in id order

	intents  map[string]int32 // name → id; absent = noLabel
	domains  map[string]int32 // "*" is not among them
	byIntent table            // intent → ordinals
	byDomain table            // domain → ordinals
	pairs    pairs            // (intent, domain) → ordinals
}

// profile is what a match reads of an agent, packed to stay in the cache.
type profile struct {
	maxTokens int32 // 0 = none
	declared  int32 // distinct intents and domains
	any       bool  // declares "*"
	requires  bool  // declares a hard requirement
}

// Build indexes agents, whose ids must be distinct, for the weights and the
// match threshold (hundredths). The order of agents does not matter. The
// entries are kept, not copied, and must not change afterwards.
func Build(agents []*contract.RegistryEntry, w Weights, threshold int) *Index {
	x := &Index{weights: w.bounded(), threshold: threshold}
	x.order(agents)
	x.list()
	return x
}

// Agents returns the agents by ordinal. The slice must not be changed.
func (x *Index) Agents() []*contract.RegistryEntry { return x.agents }

// order numbers the agents: specificity, priority desc, id.
func (x *Index) order(agents []*contract.RegistryEntry) {
	type numbered struct {
		*contract.RegistryEntry
		profile
		idRank int32
	}
	list := make([]numbered, len(agents))
	for i, a := range agents {
		list[i] = numbered{RegistryEntry: a, profile: profileOf(a)}
	}
	slices.SortFunc(list, func(a, b numbered) int { return strings.Compare(a.ID, b.ID) })
	for i := range list {
		list[i].idRank = int32(i)
	}
	slices.SortFunc(list, func(a, b numbered) int {
		return cmp.Or(a.compareSpecificity(b.profile), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.idRank, b.idRank))
	})

	x.agents = make([]*contract.RegistryEntry, len(list))
	x.profiles = make([]profile, len(list))
	x.byID = make([]int32, len(list))
	for ord, a := range list {
		x.agents[ord], x.profiles[ord] = a.RegistryEntry, a.profile
		x.byID[a.idRank] = int32(ord)
	}
}

func profileOf(a *contract.RegistryEntry) profile {
	r := &a.Requires
	return profile{
		maxTokens: int32(min(max(a.Constraints.MaxTokens, 0), math.MaxInt32)),
		declared:  int32(distinct(a.Match.Intent) + distinct(a.Match.Domains)),
		any:       slices.Contains(a.Match.Domains, contract.AnyDomain),
		requires:  len(r.Scopes) > 0 || len(r.Tenants) > 0 || len(r.DataClasses) > 0,
	}
}

// compareSpecificity puts the more specific profile first: "*" stands for every
// domain there is, so an agent that declares it is the least specific.
func (p profile) compareSpecificity(q profile) int {
	if p.any != q.any {
		if q.any {
			return -1
		}
		return 1
	}
	return cmp.Compare(p.declared, q.declared)
}

// distinct counts the different names of a list.
func distinct(names []string) int {
	const few = 16
	if len(names) > few {
		return len(slices.Compact(slices.Sorted(slices.Values(names))))
	}
	n := 0
	for i, name := range names {
		if !slices.Contains(names[:i], name) {
			n++
		}
	}
	return n
}

// list names the labels and lists the agents under them.
func (x *Index) list() {
	intents, domains := newVocabulary(), newVocabulary()
	domains.ids[contract.AnyDomain] = anyDomain

	ni, nd := 0, 0
	for _, a := range x.agents {
		ni += len(a.Match.Intent)
		nd += len(a.Match.Domains)
	}
	agentIntents, agentDomains := newTable(len(x.agents), ni), newTable(len(x.agents), nd)
	for _, a := range x.agents {
		intents.addRow(&agentIntents, a.Match.Intent)
		domains.addRow(&agentDomains, a.Match.Domains)
	}
	delete(domains.ids, contract.AnyDomain) // nobody can ask for it

	x.intents, x.domains = intents.ids, domains.ids
	x.byIntent = agentIntents.invert(intents.len())
	x.byDomain = agentDomains.invert(domains.len())
	x.pairs = pairUp(&x.byIntent, &agentIntents, &agentDomains, domains.len())
}

// find returns the ordinal of the agent with the id.
func (x *Index) find(id string) (ord int32, ok bool) {
	i, ok := slices.BinarySearchFunc(x.byID, id, func(ord int32, id string) int {
		return strings.Compare(x.agents[ord].ID, id)
	})
	if !ok {
		return 0, false
	}
	return x.byID[i], true
}
