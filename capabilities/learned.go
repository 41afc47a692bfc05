package capabilities

import "github.com/caprouter/caprouter/contract"

// learnedAgents returns the agents of Catalogue.Learned. Both lists have the same
// agents.
func learnedAgents(catalogue, fleet []*contract.RegistryEntry) []*contract.RegistryEntry {
	type learned struct{ kind, intent, text string }
	known := map[learned]bool{}
	addNew := func(a *contract.RegistryEntry) (added bool) {
		add := func(kind, intent, text string) {
			if key := (learned{kind, intent, text}); !known[key] {
				known[key], added = true, true
			}
		}
		for _, intent := range a.Match.Intent {
			add("intent", intent, "")
			for _, example := range a.Examples[intent] {
				add("example", intent, example)
			}
		}
		for _, domain := range a.Match.Domains {
			add("domain", "", domain)
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
	agents := make([]*contract.RegistryEntry, 0, len(catalogue)-registered)
	for i, a := range catalogue {
		if fleet[i].Origin != contract.OriginRegistration || !isDisabledMember(fleet[i]) && addNew(a) {
			agents = append(agents, a)
		}
	}
	return agents
}
