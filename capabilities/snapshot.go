package capabilities

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
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

// NewSnapshot splits a definition. It copies the entries, limits those of registered
// agents to their grants, and reports an error if two agents have the same id.
func NewSnapshot(d *Definition) (*Snapshot, error) {
	agents := slices.SortedFunc(slices.Values(d.Agents), compareIDs)
	c := &Catalogue{
		Agents: make([]*contract.RegistryEntry, len(agents)), DomainAliases: d.DomainAliases, Routing: d.Routing, Fallback: d.Fallback,
	}
	f := &Fleet{
		Agents: make([]*contract.RegistryEntry, len(agents)), Grants: make(map[string]contract.Grant, len(d.Grants)),
		Refused: map[string][]string{},
	}
	s := &Snapshot{Catalogue: c, Fleet: f}
	for i, a := range agents {
		if i > 0 && agents[i-1].ID == a.ID {
			return nil, fmt.Errorf("agent %s is declared twice", a.ID)
		}
		if a.Origin == contract.OriginRegistration {
			a = f.limitAgent(a, d.Grants)
		}
		c.Agents[i], f.Agents[i] = splitEntry(a)
		if d.Disabled[a.ID] {
			f.Agents[i].State = contract.AgentDisabled
		}
		if p := a.Endpoint.Protocol; p != "" && p != contract.ProtocolHTTP {
			f.Warnings = append(f.Warnings, fmt.Sprintf("%s is reached by protocol %s, which is not served yet: every task for it fails", a.ID, p))
		}
	}
	c.Learned = learnedAgents(c.Agents, f.Agents)
	c.Intents, c.Domains = declaredLabels(c.Learned)
	c.IntentDomains = indexDomains(f.withoutDisabledMembers(c.Agents))
	for _, id := range slices.Sorted(maps.Keys(d.Grants)) {
		grant := d.Grants[id]
		grant.Requires = normalizeRequires(grant.Requires)
		f.Grants[id] = grant
		if declared := f.Agent(id); declared != nil && declared.Origin == contract.OriginFile {
			f.Warnings = append(f.Warnings, fmt.Sprintf("grants.%s has no effect: %s is declared under clients, which has precedence", id, id))
		}
	}
	var err error
	if c.Version, err = c.hash(); err != nil {
		return nil, err
	}
	if c.Members, err = s.hashMembers(); err != nil {
		return nil, err
	}
	f.Revision, err = f.hash(c.Members)
	return s, err
}

// limitAgent returns the part of a registered agent that its grant contains.
func (f *Fleet) limitAgent(a *contract.RegistryEntry, grants map[string]contract.Grant) *contract.RegistryEntry {
	grant, ok := grants[a.ID]
	if !ok {
		f.Refused[a.ID] = []string{"nothing is granted: the registry has no grants for " + a.ID}
		limited, _ := LimitToGrant(a, nil)
		return limited
	}
	limited, refused := LimitToGrant(a, &grant)
	if len(refused) > 0 {
		f.Refused[a.ID] = refused
	}
	return limited
}

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

// learnedAgents returns the agents of Catalogue.Learned. Both lists have the same
// agents.
func learnedAgents(catalogue, fleet []*contract.RegistryEntry) []*contract.RegistryEntry {
	known := map[[2]string]bool{} // kind or intent, and text
	addNew := func(a *contract.RegistryEntry) (added bool) {
		add := func(kind, text string) {
			if key := [2]string{kind, text}; !known[key] {
				known[key], added = true, true
			}
		}
		for _, intent := range a.Match.Intent {
			add("intent", intent)
			for _, example := range a.Examples[intent] {
				add("example of "+intent, example)
			}
		}
		for _, domain := range a.Match.Domains {
			add("domain", domain)
		}
		return added
	}
	registered := 0
	for i, a := range catalogue {
		if fleet[i].Origin == contract.OriginRegistration {
			registered++
		} else {
			addNew(a)
		}
	}
	if registered == 0 {
		return catalogue
	}
	learned := make([]*contract.RegistryEntry, 0, len(catalogue)-registered)
	for i, a := range catalogue {
		if fleet[i].Origin != contract.OriginRegistration || !isDisabledMember(fleet[i]) && addNew(a) {
			learned = append(learned, a)
		}
	}
	return learned
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

func (c *Catalogue) hash() (string, error) {
	return hashJSON(struct {
		Format        int
		Agents        []*contract.RegistryEntry
		DomainAliases map[string][]string
		Routing       Routing
		Fallback      Fallback
	}{formatVersion, c.Learned, c.DomainAliases, c.Routing, c.Fallback})
}

// hashMembers returns Catalogue.Members.
func (s *Snapshot) hashMembers() (string, error) {
	type member struct {
		Entry    *contract.RegistryEntry
		Disabled bool // determines Catalogue.IntentDomains
	}
	var members []member
	for i, a := range s.Fleet.Agents {
		if a.Origin == contract.OriginRegistration {
			members = append(members, member{s.Catalogue.Agents[i], isDisabledMember(a)})
		}
	}
	if len(members) == 0 {
		return "", nil
	}
	return hashJSON(members)
}

func (f *Fleet) hash(members string) (string, error) {
	type unwritten struct { // what an entry's JSON does not contain
		Origin    contract.Origin
		State     contract.AgentState
		Instances []contract.Instance
	}
	others := make([]unwritten, len(f.Agents))
	for i, a := range f.Agents {
		others[i] = unwritten{a.Origin, a.State, a.Instances}
	}
	return hashJSON(struct {
		Format  int
		Members string
		Agents  []*contract.RegistryEntry
		Others  []unwritten
		Grants  map[string]contract.Grant
	}{formatVersion, members, f.Agents, others, f.Grants})
}

func hashJSON(v any) (string, error) {
	hash := sha256.New()
	if err := strictjson.MarshalWrite(hash, v); err != nil {
		return "", fmt.Errorf("hash the registry: %w", err)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
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

// PreferSpecific is the only conflict policy: of agents with the same score, the
// one with more matching domains is first, then the one that declares less.
const PreferSpecific = "prefer_specific"

// Routing contains the rules of the decision.
type Routing struct {
	ConfidenceThreshold float64 `yaml:"confidence_threshold" synonym:"score_threshold" validate:"range=0 1.1"` // match score needed, 0..1.1
	// MinConfidence is the least confidence of the classification. If it is nil,
	// the source of the classification determines it: see classifier.MinConfidence.
	MinConfidence       *float64 `yaml:"min_confidence" validate:"omitempty,range=0 1"`
	AmbiguityThreshold  float64  `yaml:"ambiguity_threshold" validate:"range=0 1"`
	TopK                int      `yaml:"topk" validate:"range=1 8"` // most distinct agents per request
	ConflictPolicy      string   `yaml:"conflict_policy" validate:"oneof=prefer_specific"`
	AutoSplitIfConflict bool     `yaml:"auto_split_if_conflict"`
	// ImpliedDomains permits that a classification gets a domain that its text
	// does not propose: see Catalogue.ImpliedDomain.
	ImpliedDomains bool `yaml:"implied_domains"`
}

// DefaultRouting returns the values of absent keys.
func DefaultRouting() Routing {
	return Routing{
		ConfidenceThreshold: 0.65,
		AmbiguityThreshold:  0.1,
		TopK:                2,
		ConflictPolicy:      PreferSpecific,
		AutoSplitIfConflict: true,
		ImpliedDomains:      true,
	}
}

// ThresholdHundredths returns the smallest integer score that reaches
// ConfidenceThreshold: 65 for 0.65, 66 for 0.655.
func (r Routing) ThresholdHundredths() int {
	// The tolerance keeps 0.55, which is 55.00000000000001 hundredths, at 55.
	return int(math.Ceil(r.ConfidenceThreshold*100 - 1e-9))
}

// The fallback policies.
const (
	FallbackAuto        = "auto" // FallbackAnswer if a model is configured, else FallbackUnsupported
	FallbackAnswer      = "A"    // a model answers directly, within bounds
	FallbackUnsupported = "B"    // refuse, and list what is supported
	FallbackPropose     = "C"    // open a ticket that proposes an agent
)

// policyWords are the words that a file may contain for a policy.
var policyWords = map[string]string{"answer": FallbackAnswer, "refuse": FallbackUnsupported, "ticket": FallbackPropose}

// Fallback configures the answer to requests without an eligible agent.
type Fallback struct {
	Policy    string `yaml:"policy" validate:"policy"`             // one of the constants above
	MaxTokens int    `yaml:"max_tokens" validate:"range=1 100000"` // of an answer by FallbackAnswer
	Language  string `yaml:"language" validate:"language"`         // "auto" or a BCP 47 tag
}

// DefaultFallback returns the values of absent keys.
func DefaultFallback() Fallback {
	return Fallback{Policy: FallbackAuto, MaxTokens: 600, Language: "auto"}
}
