package capabilities

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// IntentDomains are the domains of the agents that declare one intent.
type IntentDomains struct {
	All    map[string]bool // contract.AnyDomain included
	Common []string        // the domains that all of the agents declare, in the order of the first agent
}

// indexDomains indexes the domains by intent. The agents are sorted by id.
func indexDomains(agents []*contract.RegistryEntry) map[string]*IntentDomains {
	index := map[string]*IntentDomains{}
	for _, a := range agents {
		for _, intent := range a.Match.Intent {
			s, known := index[intent]
			if !known {
				s = &IntentDomains{All: make(map[string]bool, len(a.Match.Domains)), Common: slices.Clone(a.Match.Domains)}
				index[intent] = s
			}
			for _, domain := range a.Match.Domains {
				s.All[domain] = true
			}
			if known && len(s.Common) > 0 {
				s.Common = slices.DeleteFunc(s.Common, func(d string) bool { return !slices.Contains(a.Match.Domains, d) })
			}
		}
	}
	return index
}

// ServesDomain reports whether one of the domains belongs to an agent that
// declares the intent. A declared contract.AnyDomain matches every domain, also
// contract.Unknown.
func (c *Catalogue) ServesDomain(intent string, domains []string) bool {
	s := c.IntentDomains[intent]
	if s == nil || len(domains) == 0 {
		return false
	}
	return s.All[contract.AnyDomain] || slices.ContainsFunc(domains, func(d string) bool { return s.All[d] })
}

// ImpliedDomain returns the domain that the intent implies: the first one that all
// agents that declare the intent share, which for a single agent is its first. It
// returns "" if there is none: then the domain decides which agent is meant. It
// depends neither on a caller nor on the state of agents.
func (c *Catalogue) ImpliedDomain(intent string) string {
	s := c.IntentDomains[intent]
	if s == nil {
		return ""
	}
	for _, domain := range s.Common {
		if domain != contract.AnyDomain {
			return domain
		}
	}
	return ""
}
