package teach

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

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
