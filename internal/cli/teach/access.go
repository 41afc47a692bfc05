package teach

import (
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// TenantOfCase returns the tenant of a case that expects the agents: that of the caller if the agents
// serve it, else the first one that all of them serve, "" if there is none. It is "" as well if no
// agent of the registry limits its tenants, because a tenant then changes nothing.
func TenantOfCase(s *capabilities.Snapshot, agents []string, caller string) string {
	limits := false
	var served []string // by each of the agents that limit their tenants
	for _, a := range s.Entries() {
		tenants := a.Requires.Tenants
		if len(tenants) == 0 {
			continue
		}
		limits = true
		if slices.Contains(agents, a.ID) {
			if served == nil {
				served = slices.Clone(tenants)
				continue
			}
			served = slices.DeleteFunc(served, func(t string) bool { return !slices.Contains(tenants, t) })
		}
	}
	switch {
	case !limits:
		return ""
	case served == nil || slices.Contains(served, caller):
		return caller
	case len(served) > 0:
		return served[0]
	}
	return ""
}

// LacksAccess reports whether no agent was chosen because the caller may not use one that fits.
// No example of the registry would change that.
func LacksAccess(d *contract.Decision) bool {
	if d == nil || len(d.Chosen) > 0 {
		return false
	}
	return slices.ContainsFunc(slices.Concat(d.Candidates, d.Hidden), func(c contract.Candidate) bool {
		isOther := func(g contract.Gate) bool {
			return !slices.Contains([]string{"entitlement", "scopes", "tenant"}, g.Gate)
		}
		return len(c.Gates) > 0 && !slices.ContainsFunc(c.Gates, isOther)
	})
}
