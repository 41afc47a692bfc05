package matcher

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Index finds the matching agents of one catalogue. It is immutable and safe for
// concurrent use.
type Index struct {
	weights       Weights
	threshold     int
	limitsClasses bool // an agent does not accept data of every kind

	agents   []*contract.RegistryEntry // by ordinal
	profiles []agentProfile            // by ordinal
	byID     []int32                   // ordinals in id order

	intents  map[string]int32 // name → label id; absent = noLabel
	domains  map[string]int32 // without "*"
	byIntent packedRows       // intent → ordinals
	byDomain packedRows       // domain → ordinals
	pairs    pairTable        // (intent, domain) → ordinals
}

// agentProfile contains what a match reads of an agent, in 12 bytes, so that many
// profiles fit into the cache.
type agentProfile struct {
	maxTokens       int32 // 0 = none
	labelCount      int32 // distinct intents and domains
	declaresAny     bool  // declares "*"
	hasRequirements bool  // declares a hard requirement
}

// Build returns the index of agents with distinct ids, in any order, for the weights
// and the match threshold in hundredths. The index keeps the entries, so they must
// not change afterwards.
func Build(agents []*contract.RegistryEntry, w Weights, threshold int) *Index {
	x := &Index{weights: w.clamped(), threshold: threshold}
	x.orderAgents(agents)
	x.buildTables()
	return x
}

// Agents returns the agents by ordinal. The slice must not be changed.
func (x *Index) Agents() []*contract.RegistryEntry { return x.agents }

// LimitsDataClasses reports whether an agent does not accept data of every kind.
// Otherwise Query.InputClasses has no effect.
func (x *Index) LimitsDataClasses() bool { return x.limitsClasses }

// orderAgents numbers the agents by specificity, priority (descending) and id.
func (x *Index) orderAgents(agents []*contract.RegistryEntry) {
	type numbered struct {
		*contract.RegistryEntry
		agentProfile
		idRank int32
	}
	list := make([]numbered, len(agents))
	for i, a := range agents {
		list[i] = numbered{RegistryEntry: a, agentProfile: profileOf(a)}
	}
	slices.SortFunc(list, func(a, b numbered) int { return strings.Compare(a.ID, b.ID) })
	for i := range list {
		list[i].idRank = int32(i)
	}
	slices.SortFunc(list, func(a, b numbered) int {
		return cmp.Or(a.compareSpecificity(b.agentProfile), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.idRank, b.idRank))
	})

	x.agents = make([]*contract.RegistryEntry, len(list))
	x.profiles = make([]agentProfile, len(list))
	x.byID = make([]int32, len(list))
	for ord, a := range list {
		x.agents[ord], x.profiles[ord] = a.RegistryEntry, a.agentProfile
		x.byID[a.idRank] = int32(ord)
		x.limitsClasses = x.limitsClasses || limitsClasses(a.RegistryEntry)
	}
}

func profileOf(a *contract.RegistryEntry) agentProfile {
	r := &a.Requires
	return agentProfile{
		maxTokens:       int32(min(max(a.Constraints.MaxTokens, 0), math.MaxInt32)),
		labelCount:      int32(countDistinct(a.Match.Intent) + countDistinct(a.Match.Domains)),
		declaresAny:     slices.Contains(a.Match.Domains, contract.AnyDomain),
		hasRequirements: len(r.Scopes) > 0 || len(r.Tenants) > 0 || len(r.DataClasses) > 0 || limitsClasses(a),
	}
}

// compareSpecificity orders the more specific profile first. "*" means every domain,
// so agents that declare it are the least specific.
func (p agentProfile) compareSpecificity(q agentProfile) int {
	if p.declaresAny != q.declaresAny {
		if q.declaresAny {
			return -1
		}
		return 1
	}
	return cmp.Compare(p.labelCount, q.labelCount)
}

// countDistinct counts the distinct names of a list.
func countDistinct(names []string) int {
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

// buildTables numbers the labels and builds their posting lists.
func (x *Index) buildTables() {
	intents, domains := newVocabulary(), newVocabulary()
	domains.ids[contract.AnyDomain] = anyDomain

	ni, nd := 0, 0
	for _, a := range x.agents {
		ni += len(a.Match.Intent)
		nd += len(a.Match.Domains)
	}
	agentIntents, agentDomains := newPackedRows(len(x.agents), ni), newPackedRows(len(x.agents), nd)
	for _, a := range x.agents {
		intents.addRow(&agentIntents, a.Match.Intent)
		domains.addRow(&agentDomains, a.Match.Domains)
	}
	delete(domains.ids, contract.AnyDomain) // requests cannot ask for it

	x.intents, x.domains = intents.ids, domains.ids
	x.byIntent = agentIntents.transpose(intents.len())
	x.byDomain = agentDomains.transpose(domains.len())
	x.pairs = buildPairs(&x.byIntent, &agentIntents, &agentDomains, domains.len())
}

// findOrdinal returns the ordinal of the agent with the id.
func (x *Index) findOrdinal(id string) (ord int32, ok bool) {
	i, ok := slices.BinarySearchFunc(x.byID, id, func(ord int32, id string) int {
		return strings.Compare(x.agents[ord].ID, id)
	})
	if !ok {
		return 0, false
	}
	return x.byID[i], true
}
