package visibility

import (
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Registry is the part of a registry that one caller may see.
type Registry struct {
	Agents   []contract.RegistryEntry
	Intents  []string
	Domains  []string
	Aliases  map[string][]string // by domain
	Grants   map[string]contract.Grant
	Warnings []string
}

// FilterRegistry returns the part of the registry that the caller may see.
// Warnings name agents, so only a caller that may see all agents gets them.
func FilterRegistry(registry *capabilities.Snapshot, caller *contract.Caller) Registry {
	visible := Visible(registry.Catalogue, caller)
	filtered := Registry{
		Agents:   make([]contract.RegistryEntry, 0, len(visible.List())),
		Intents:  visible.Intents(),
		Domains:  visible.Domains(),
		Aliases:  map[string][]string{},
		Grants:   map[string]contract.Grant{},
		Warnings: []string{},
	}
	for _, agent := range visible.List() {
		filtered.Agents = append(filtered.Agents, FilterEntry(registry.Entry(agent.ID), caller))
	}
	for _, domain := range filtered.Domains {
		if aliases := registry.Catalogue.DomainAliases[domain]; len(aliases) > 0 {
			filtered.Aliases[domain] = aliases
		}
	}
	for subject, grant := range registry.Fleet.Grants {
		if MaySeeAgent(caller, subject) {
			grant.Requires = filterTenants(grant.Requires, caller)
			filtered.Grants[subject] = grant
		}
	}
	if visible.All() {
		filtered.Warnings = registry.Fleet.Warnings
	}
	return filtered
}

// FilterEntry returns the entry of an agent that the caller may see. The URL is
// for operators, so that agents that may read the registry do not learn each
// other's addresses. A tenant does not learn which other tenants an agent serves.
func FilterEntry(entry *contract.RegistryEntry, caller *contract.Caller) contract.RegistryEntry {
	filtered := *entry
	if !caller.SeesAll() {
		filtered.Endpoint.URL, filtered.Endpoint.Action, filtered.Endpoint.Arguments = "", "", nil
		filtered.Requires = filterTenants(filtered.Requires, caller)
	}
	return filtered
}

// filterTenants removes all tenants except the caller's.
func filterTenants(requires contract.Requires, caller *contract.Caller) contract.Requires {
	switch {
	case caller.SeesAll():
	case slices.Contains(requires.Tenants, caller.Tenant):
		requires.Tenants = []string{caller.Tenant}
	default:
		requires.Tenants = nil
	}
	return requires
}
