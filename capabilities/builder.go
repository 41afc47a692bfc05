package capabilities

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// Builder makes the snapshots of definitions that follow each other. Entries that it has
// seen in the definition before are not limited, split and hashed again, so that one
// more registered agent costs little. Its zero value is ready to use. It is not safe for
// concurrent use.
type Builder struct {
	parts  []*entryParts // of the last definition, sorted by id
	grants grantParts
}

// entryParts is what a snapshot contains of one entry. It is immutable.
type entryParts struct {
	source           *contract.RegistryEntry // of the definition
	disabled         bool
	catalogue, fleet *contract.RegistryEntry
	refused          []string
	memberDigest     digest // zero unless it is registered
	fleetDigest      digest
}

// grantParts is what a snapshot contains of the grants of a definition. It is immutable.
type grantParts struct {
	source map[string]contract.Grant // of the definition
	grants map[string]contract.Grant
	digest digest
}

// Build splits a definition. It copies the entries, limits those of registered agents to
// their grants, and reports an error if two agents have the same id. Entries and grants
// must not change afterwards.
func (b *Builder) Build(d *Definition) (*Snapshot, error) {
	agents := slices.SortedFunc(slices.Values(d.Agents), compareIDs)
	if err := b.setGrants(d.Grants); err != nil {
		return nil, err
	}
	c := &Catalogue{
		Agents: make([]*contract.RegistryEntry, len(agents)), DomainAliases: d.DomainAliases, Routing: d.Routing, Fallback: d.Fallback,
	}
	f := &Fleet{Agents: make([]*contract.RegistryEntry, len(agents)), Grants: b.grants.grants, Refused: map[string][]string{}}
	s := &Snapshot{Catalogue: c, Fleet: f}
	parts, before := make([]*entryParts, len(agents)), b.parts
	for i, a := range agents {
		if i > 0 && agents[i-1].ID == a.ID {
			return nil, fmt.Errorf("agent %s is declared twice", a.ID)
		}
		for len(before) > 0 && before[0].source.ID < a.ID {
			before = before[1:]
		}
		if len(before) > 0 && before[0].source == a && before[0].disabled == d.Disabled[a.ID] {
			parts[i] = before[0]
		} else {
			var err error
			if parts[i], err = newEntryParts(a, d); err != nil {
				return nil, err
			}
		}
		c.Agents[i], f.Agents[i] = parts[i].catalogue, parts[i].fleet
		if len(parts[i].refused) > 0 {
			f.Refused[a.ID] = parts[i].refused
		}
	}
	b.parts = parts
	f.Warnings = warningsOf(agents, d.Grants)
	c.Learned = learnedAgents(c.Agents, f.Agents)
	c.Intents, c.Domains = declaredLabels(c.Learned)
	c.IntentDomains = indexDomains(f.withoutDisabledMembers(c.Agents))
	var err error
	if c.Version, err = c.hash(); err != nil {
		return nil, err
	}
	c.Members = hashMembers(parts)
	f.Revision = hashFleet(c.Members, parts, b.grants.digest)
	return s, nil
}

// setGrants sets the grants of the definition. If they are not those of the last one, no
// entry is reused.
func (b *Builder) setGrants(source map[string]contract.Grant) error {
	if b.grants.grants != nil && isSameMap(b.grants.source, source) {
		return nil
	}
	b.parts = nil
	b.grants = grantParts{source: source, grants: make(map[string]contract.Grant, len(source))}
	for id, grant := range source {
		grant.Requires = normalizeRequires(grant.Requires)
		b.grants.grants[id] = grant
	}
	var err error
	b.grants.digest, err = digestJSON(b.grants.grants)
	return err
}

// isSameMap reports whether both are the same map, not only equal ones.
func isSameMap(a, b map[string]contract.Grant) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func newEntryParts(a *contract.RegistryEntry, d *Definition) (p *entryParts, err error) {
	p = &entryParts{source: a, disabled: d.Disabled[a.ID]}
	if a.Origin == contract.OriginRegistration {
		a, p.refused = limitToGrants(a, d.Grants)
	}
	p.catalogue, p.fleet = splitEntry(a)
	if p.disabled {
		p.fleet.State = contract.AgentDisabled
	}
	if a.Origin == contract.OriginRegistration {
		if p.memberDigest, err = digestMember(p); err != nil {
			return nil, err
		}
	}
	p.fleetDigest, err = digestFleetEntry(p.fleet)
	return p, err
}

// limitToGrants returns the part of a registered agent that its grant contains, and
// sentences about the rest.
func limitToGrants(a *contract.RegistryEntry, grants map[string]contract.Grant) (limited *contract.RegistryEntry, refused []string) {
	grant, ok := grants[a.ID]
	if !ok {
		limited, _ = LimitToGrant(a, nil)
		return limited, []string{"nothing is granted: the registry has no grants for " + a.ID}
	}
	return LimitToGrant(a, &grant)
}

// warningsOf returns sentences for the operator about declarations without effect.
func warningsOf(agents []*contract.RegistryEntry, grants map[string]contract.Grant) (warnings []string) {
	for _, a := range agents {
		if _, granted := grants[a.ID]; granted && a.Origin == contract.OriginFile {
			warnings = append(warnings, fmt.Sprintf("grants.%s has no effect: %[1]s is declared under clients, which has precedence", a.ID))
		}
	}
	return warnings
}
