package golden

import (
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// DeclaredNames are what cases may name, sorted.
type DeclaredNames struct{ Agents, Intents, Domains []string }

// NewDeclaredNames returns what any of the registries declares.
func NewDeclaredNames(registries ...*capabilities.Snapshot) *DeclaredNames {
	n := &DeclaredNames{Intents: []string{contract.Unknown}, Domains: []string{contract.Unknown}}
	for _, s := range registries {
		for _, a := range s.Catalogue.Agents {
			n.Agents = append(n.Agents, a.ID)
		}
		n.Intents = append(n.Intents, s.Catalogue.Intents...)
		n.Domains = append(n.Domains, s.Catalogue.Domains...)
	}
	for _, list := range []*[]string{&n.Agents, &n.Intents, &n.Domains} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}
