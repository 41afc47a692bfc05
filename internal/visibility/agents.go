package visibility

import (
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// MaySeeAgent reports whether the caller may know about the agent, which may have
// left the registry: it may use the agent, or sees everything.
func MaySeeAgent(caller *contract.Caller, id string) bool {
	return caller.MayUse(id) || caller.SeesAll()
}

// Agents is a part of a registry: the agents of one caller, and the labels that
// they declare. It is immutable. The zero value contains no agent.
type Agents struct {
	registry *capabilities.Catalogue // set if the caller has all of its agents
	list     []*contract.RegistryEntry
}

// Visible returns the agents that the caller may see.
func Visible(registry *capabilities.Catalogue, caller *contract.Caller) Agents {
	if caller != nil && caller.SeesAll() {
		return allAgents(registry)
	}
	return Usable(registry, caller)
}

// Usable returns the agents that the caller may use, which leaves out those that
// an admin may only see. Without a caller there are none.
func Usable(registry *capabilities.Catalogue, caller *contract.Caller) Agents {
	switch {
	case caller == nil:
		return Agents{}
	case caller.AllAgents || caller.AllScopes:
		return allAgents(registry)
	}
	// The scopes are fewer than the agents of a large registry.
	var list []*contract.RegistryEntry
	for _, scope := range caller.Scopes {
		if id, ok := strings.CutPrefix(scope, "agent:"); ok {
			if agent := registry.Agent(id); agent != nil {
				list = append(list, agent)
			}
		}
	}
	slices.SortFunc(list, func(a, b *contract.RegistryEntry) int { return strings.Compare(a.ID, b.ID) })
	return Agents{list: slices.Compact(list)}
}

func allAgents(registry *capabilities.Catalogue) Agents {
	return Agents{registry: registry, list: registry.Agents}
}

// All reports whether the caller has every agent of the registry.
func (a Agents) All() bool { return a.registry != nil }

// List returns the agents, sorted by id. The caller must not change the slice.
func (a Agents) List() []*contract.RegistryEntry { return a.list }

// Has reports whether the agent is one of them.
func (a Agents) Has(id string) bool {
	_, found := slices.BinarySearchFunc(a.list, id, func(agent *contract.RegistryEntry, id string) int {
		return strings.Compare(agent.ID, id)
	})
	return found
}

// Intents returns the intents that the agents declare, sorted.
func (a Agents) Intents() []string {
	if a.All() {
		return a.registry.Intents
	}
	return a.collectLabels(func(m *contract.Match) []string { return m.Intent })
}

// Domains returns the domains that the agents declare, sorted, without
// contract.AnyDomain.
func (a Agents) Domains() []string {
	if a.All() {
		return a.registry.Domains
	}
	return a.collectLabels(func(m *contract.Match) []string { return m.Domains })
}

func (a Agents) collectLabels(of func(*contract.Match) []string) []string {
	names := map[string]bool{}
	for _, agent := range a.list {
		for _, name := range of(&agent.Match) {
			names[name] = true
		}
	}
	delete(names, contract.AnyDomain)
	return slices.Sorted(maps.Keys(names))
}

// HasIntent reports whether one of the agents declares the intent.
func (a Agents) HasIntent(label string) bool {
	return a.anyAgent(func(agent *contract.RegistryEntry) bool { return slices.Contains(agent.Match.Intent, label) })
}

// HasDomain reports whether one of the agents declares the domain by its name:
// contract.AnyDomain is none.
func (a Agents) HasDomain(label string) bool {
	return label != contract.AnyDomain &&
		a.anyAgent(func(agent *contract.RegistryEntry) bool { return slices.Contains(agent.Match.Domains, label) })
}

// HasExample reports whether one of the agents has the example utterance.
func (a Agents) HasExample(text string) bool {
	return a.anyAgent(func(agent *contract.RegistryEntry) bool {
		for _, list := range agent.Examples {
			if slices.Contains(list, text) {
				return true
			}
		}
		return false
	})
}

// HasExampleOf reports whether one of the agents has the example utterance for
// the intent.
func (a Agents) HasExampleOf(intent, text string) bool {
	return a.All() || a.anyAgent(func(agent *contract.RegistryEntry) bool {
		return slices.Contains(agent.Match.Intent, intent) && slices.Contains(agent.Examples[intent], text)
	})
}

// declares reports whether one of the agents serves the intent of the evidence and
// declares its text. The origins of domains contain the aliases.
func (a Agents) declares(e *contract.Evidence, origins []contract.DomainOrigin) bool {
	return a.anyAgent(func(agent *contract.RegistryEntry) bool {
		if !slices.Contains(agent.Match.Intent, e.Intent) {
			return false
		}
		switch e.Kind {
		case contract.EvidenceExample:
			return slices.Contains(agent.Examples[e.Intent], e.Text)
		case contract.EvidenceKeyword:
			return slices.Contains(agent.Keywords, e.Text)
		case contract.EvidenceDescription:
			return agent.Description == e.Text
		case contract.EvidenceName:
			return e.Text == e.Intent
		case contract.EvidenceAlias:
			return slices.ContainsFunc(origins, func(o contract.DomainOrigin) bool {
				return o.Origin == contract.DomainAlias && o.Text == e.Text && slices.Contains(agent.Match.Domains, o.Domain)
			})
		case contract.EvidenceTypo, contract.EvidenceSynonym, contract.EvidenceSimilar, contract.EvidenceNegation:
			return usesWord(agent, e)
		case contract.EvidenceLearned, contract.EvidenceFollowUp:
			return true // the text is of the caller
		}
		return false
	})
}

// usesWord reports whether a text of the agent for the intent of the evidence contains
// its word. Accents are not ignored, so that a word may count as absent, but never as
// present.
func usesWord(agent *contract.RegistryEntry, e *contract.Evidence) bool {
	texts := slices.Concat([]string{e.Intent, agent.Description}, agent.Keywords, agent.Examples[e.Intent])
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), e.Text) })
}

func (a Agents) anyAgent(condition func(*contract.RegistryEntry) bool) bool {
	return slices.ContainsFunc(a.list, condition)
}

// CountVisible adds the counts of hidden labels to contract.Unknown. No count
// exceeds limit, because one request may have several hidden labels.
func CountVisible(counts map[string]int, visible func(label string) bool, limit int) map[string]int {
	filtered := make(map[string]int, len(counts))
	for label, n := range counts {
		if !visible(label) {
			label = contract.Unknown
		}
		filtered[label] = min(filtered[label]+n, limit)
	}
	return filtered
}
