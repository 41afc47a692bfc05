package plan

import (
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// resolveDomain returns the domains to choose from, if the domain decides which agent
// a part is meant for and the part has none: several agents declare the intent, and
// none of their domains is proposed or implied. It returns nil if an agent is eligible
// without a domain, or would not be with one.
func (p *planner) resolveDomain(part *Part) (options []contract.ClarificationOption) {
	weights, threshold := matcher.DefaultWeights(), p.in.Catalogue.Routing.ThresholdHundredths()
	switch {
	case !p.in.Catalogue.Routing.ImpliedDomains, part.Confidence < p.query.MinConfidence,
		weights.Intent >= threshold, weights.Intent+weights.Domain < threshold,
		part.Intent == contract.Unknown, p.in.Catalogue.ServesDomain(part.Intent, part.Domains):
		return nil
	}
	for i, domain := range p.in.domainsOf(part.Intent) {
		domains := []string{domain}
		options = append(options, contract.ClarificationOption{
			ID: strconv.Itoa(i + 1), Label: contract.OptionLabel(part.Intent, domains), Intent: part.Intent, Domains: domains,
		})
	}
	if len(options) < 2 {
		return nil
	}
	return options
}

// domainsOf returns up to maxOptions domains of the agents that declare the intent
// and that the caller may use. The first domains of the agents come first, so that
// every agent is represented if possible.
func (in *Input) domainsOf(intent string) (domains []string) {
	longest := 0
	var agents []*contract.RegistryEntry
	for _, a := range in.Catalogue.Agents {
		if slices.Contains(a.Match.Intent, intent) && in.mayConsider(a.ID) {
			agents = append(agents, a)
			longest = max(longest, len(a.Match.Domains))
		}
	}
	for rank := range longest {
		for _, a := range agents {
			if len(domains) == maxOptions {
				return domains
			}
			if rank < len(a.Match.Domains) && a.Match.Domains[rank] != contract.AnyDomain {
				domains = appendUnique(domains, a.Match.Domains[rank])
			}
		}
	}
	return domains
}
