package capabilities

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Definition is the content of a registry as its sources declare it. NewSnapshot
// splits it into a Catalogue and a Fleet.
type Definition struct {
	Agents        []*contract.RegistryEntry // complete entries with distinct ids, in any order
	DomainAliases map[string][]string       // other words for domains, by domain
	Routing       Routing
	Fallback      Fallback
	Grants        map[string]contract.Grant
	// Disabled are the ids of agents that an operator has taken out of routing.
	Disabled map[string]bool
}

// Snapshot is one version of the registry. It is immutable and may be shared.
// Its catalogue and its fleet contain the same agents.
type Snapshot struct {
	Catalogue *Catalogue
	Fleet     *Fleet
}

// Catalogue is the part of the registry that decisions depend on: what the
// classifiers and the matcher read. It is immutable.
//
// The entries contain id, description, match, examples, keywords, not_for,
// constraints, requires, accepts_data_classes and priority; every other key is zero.
type Catalogue struct {
	// Version is "sha256:<hex>" of what classifiers read, Learned included, and of the
	// rules, with defaults filled in, so that layout, order and comments of a file do
	// not change it. It is the registry_version of decisions and part of the key of
	// cached classifications.
	Version string
	// Members is "sha256:<hex>" of the agents that registered themselves; "" if there
	// are none. The match index depends on Version and on Members.
	Members string
	Agents  []*contract.RegistryEntry // sorted by id
	// Learned are the agents that classifiers learn from: those of the operator's file,
	// and registered ones that declare an intent, a domain or an example that the
	// others do not. So most registrations need no training. Registered agents that are
	// disabled are left out, so that disabling an agent also ends its influence on the
	// classification. Sorted by id.
	Learned []*contract.RegistryEntry

	Intents []string // all that Learned declare: sorted, distinct
	Domains []string // likewise, without contract.AnyDomain
	// DomainAliases are other words for domains, by domain. A domain that no agent
	// declares has no effect.
	DomainAliases map[string][]string

	Routing  Routing
	Fallback Fallback

	IntentDomains map[string]*IntentDomains // by intent, of Agents without those that Learned leaves out as disabled
}

// Fleet is the part of the registry that specifies how agents are reached and which
// data they may receive. A change of the fleet changes no decision, so it needs no
// training and leaves cached classifications valid. It is immutable.
//
// The entries contain id, endpoint, mcp_capabilities, restore, health,
// max_in_flight, the origin, the state and the instances; every other key is zero.
type Fleet struct {
	Revision string                    // "sha256:<hex>" of the content, and of Catalogue.Members
	Agents   []*contract.RegistryEntry // sorted by id
	Grants   map[string]contract.Grant // what agents may register, by their id
	// Refused are sentences about what registered agents declare and their grants do
	// not contain, by agent id. Routing does not use it.
	Refused map[string][]string
	// Warnings are sentences for the operator about declarations without effect.
	Warnings []string
}

// NewSnapshot splits a definition: see Builder.Build.
func NewSnapshot(d *Definition) (*Snapshot, error) { return new(Builder).Build(d) }

// declaredLabels returns the intents and the domains of the agents, without
// contract.AnyDomain.
func declaredLabels(agents []*contract.RegistryEntry) (intents, domains []string) {
	seenIntents, seenDomains := map[string]bool{}, map[string]bool{}
	for _, a := range agents {
		for _, intent := range a.Match.Intent {
			seenIntents[intent] = true
		}
		for _, domain := range a.Match.Domains {
			seenDomains[domain] = true
		}
	}
	delete(seenDomains, contract.AnyDomain)
	return slices.Sorted(maps.Keys(seenIntents)), slices.Sorted(maps.Keys(seenDomains))
}

// isDisabledMember reports whether the entry of the fleet is that of a registered agent
// that an operator has disabled.
func isDisabledMember(a *contract.RegistryEntry) bool {
	return a.Origin == contract.OriginRegistration && a.State == contract.AgentDisabled
}

// withoutDisabledMembers returns the entries of the catalogue, which has the same agents,
// without those of registered agents that are disabled.
func (f *Fleet) withoutDisabledMembers(catalogue []*contract.RegistryEntry) []*contract.RegistryEntry {
	if !slices.ContainsFunc(f.Agents, isDisabledMember) {
		return catalogue
	}
	var enabled []*contract.RegistryEntry
	for i, a := range catalogue {
		if !isDisabledMember(f.Agents[i]) {
			enabled = append(enabled, a)
		}
	}
	return enabled
}

// WithDisabled returns a copy of the fleet in which the agents that a later one disables
// are disabled as well, and nil if they are already.
func (f *Fleet) WithDisabled(later *Fleet) *Fleet {
	var next *Fleet
	for i, a := range f.Agents {
		if l := later.Agent(a.ID); l == nil || l.State != contract.AgentDisabled || a.State == contract.AgentDisabled {
			continue
		}
		if next == nil {
			c := *f
			c.Agents = slices.Clone(f.Agents)
			next = &c
		}
		entry := *a
		entry.State = contract.AgentDisabled
		next.Agents[i] = &entry
	}
	return next
}

// splitEntry copies an entry into its keys of the catalogue and of the fleet.
func splitEntry(e *contract.RegistryEntry) (catalogue, fleet *contract.RegistryEntry) {
	catalogue = &contract.RegistryEntry{
		ID: e.ID, Description: e.Description, Match: e.Match, Examples: e.Examples, Keywords: e.Keywords, NotFor: e.NotFor,
		Constraints: e.Constraints, Requires: normalizeRequires(e.Requires), AcceptsDataClasses: acceptedClasses(e), Priority: e.Priority,
	}
	fleet = &contract.RegistryEntry{
		ID: e.ID, Endpoint: e.Endpoint, MCPCapabilities: e.MCPCapabilities, Restore: e.Restore, Health: e.Health,
		MaxInFlight: e.MaxInFlight, Origin: e.Origin, State: e.State, Instances: e.Instances,
	}
	return catalogue, fleet
}

// joinEntry is the inverse of splitEntry.
func joinEntry(catalogue, fleet *contract.RegistryEntry) *contract.RegistryEntry {
	e := *catalogue
	e.Endpoint, e.MCPCapabilities, e.Restore, e.Health = fleet.Endpoint, fleet.MCPCapabilities, fleet.Restore, fleet.Health
	e.MaxInFlight, e.Origin, e.State, e.Instances = fleet.MaxInFlight, fleet.Origin, fleet.State, fleet.Instances
	return &e
}

// normalizeRequires replaces empty lists by nil, so that both have one version.
func normalizeRequires(r contract.Requires) contract.Requires {
	for _, list := range []*[]string{&r.Scopes, &r.Tenants, &r.DataClasses} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return r
}

// acceptedClasses returns the kinds that the entry accepts, or nil for all of them, so
// that an explicit default has the same version.
func acceptedClasses(e *contract.RegistryEntry) contract.DataClasses {
	if slices.Contains(e.AcceptsDataClasses, contract.AllClasses) {
		return nil
	}
	return e.AcceptsDataClasses
}

// Entry returns the complete entry of an agent, or nil if there is none.
func (s *Snapshot) Entry(id string) *contract.RegistryEntry {
	if c, f := s.Catalogue.Agent(id), s.Fleet.Agent(id); c != nil && f != nil {
		return joinEntry(c, f)
	}
	return nil
}

// Entries returns the complete entries, sorted by id.
func (s *Snapshot) Entries() []*contract.RegistryEntry {
	entries := make([]*contract.RegistryEntry, 0, len(s.Catalogue.Agents))
	for _, a := range s.Catalogue.Agents {
		if e := s.Entry(a.ID); e != nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// Agent returns the catalogue's entry of an agent, or nil if there is none.
func (c *Catalogue) Agent(id string) *contract.RegistryEntry { return findAgent(c.Agents, id) }

// Agent returns the fleet's entry of an agent, or nil if there is none.
func (f *Fleet) Agent(id string) *contract.RegistryEntry { return findAgent(f.Agents, id) }

func findAgent(sorted []*contract.RegistryEntry, id string) *contract.RegistryEntry {
	i, found := slices.BinarySearchFunc(sorted, id, func(a *contract.RegistryEntry, id string) int {
		return strings.Compare(a.ID, id)
	})
	if !found {
		return nil
	}
	return sorted[i]
}

func compareIDs(a, b *contract.RegistryEntry) int { return cmp.Compare(a.ID, b.ID) }

// WithProtocol returns the ids of the agents whose endpoint has the protocol, sorted.
func (f *Fleet) WithProtocol(protocol string) (ids []string) {
	for _, a := range f.Agents {
		if a.Endpoint.Protocol == protocol {
			ids = append(ids, a.ID)
		}
	}
	return ids
}
