package classifier

import (
	"cmp"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/prompts"
)

// What speaks for an agent beside its best intent, which counts from 0 to 1: up
// to two of its domains, as in the match (003 §3). Both together stay below a
// whole intent: a prompt may ask for several things and name one domain.
const (
	domainWeight  = 0.3
	mostOfDomains = 2
)

// shown returns the agents the model is to choose from, in the order of the
// registry. A model's accuracy falls with the number it has to choose from, so of
// many it sees a few.
func (c *Classifier) shown(in *Input) []*contract.RegistryEntry {
	agents := in.Catalogue.Agents
	if len(agents) <= c.shortlistAbove || len(agents) <= c.shortlistK {
		return agents
	}
	chosen := newShortlist(agents, c.shortlistK)
	if in.Lexical != nil {
		chosen.addFor(in.Lexical.GatherEvidence(in.Prompt))
		// "And on azure?" says little by itself. Earlier turns, latest first, say
		// what it is about.
		for _, turn := range slices.Backward(latest(in.History)) {
			if chosen.left == 0 {
				break
			}
			chosen.addFor(in.Lexical.GatherEvidence(turn.Content))
		}
	}
	return chosen.filledUp()
}

// shortlist chooses among agents.
type shortlist struct {
	agents []*contract.RegistryEntry
	chosen []bool // by agent
	left   int    // places
}

func newShortlist(agents []*contract.RegistryEntry, places int) *shortlist {
	return &shortlist{agents: agents, chosen: make([]bool, len(agents)), left: places}
}

// addFor adds the agents that the evidence speaks for, best first, while there
// is room; of two with the same evidence the one that is first in the registry.
func (s *shortlist) addFor(e lexical.Evidence) {
	intents := make(map[string]float64, len(e.Intents))
	for _, i := range e.Intents {
		intents[i.Intent] = i.Confidence
	}
	type ranked struct {
		agent int
		score float64
	}
	var order []ranked
	for i, agent := range s.agents {
		if score := evidenceFor(agent, intents, e.Domains); score > 0 && !s.chosen[i] {
			order = append(order, ranked{i, score})
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	for _, r := range order[:min(len(order), s.left)] {
		s.choose(r.agent)
	}
}

func (s *shortlist) choose(agent int) {
	s.chosen[agent] = true
	s.left--
}

// filledUp returns the chosen agents. Places that nothing speaks for go to the
// first of the registry: a request in words nobody declared must not leave the
// model with nothing to choose from.
func (s *shortlist) filledUp() []*contract.RegistryEntry {
	for i := 0; i < len(s.agents) && s.left > 0; i++ {
		if !s.chosen[i] {
			s.choose(i)
		}
	}
	var list []*contract.RegistryEntry
	for i, agent := range s.agents {
		if s.chosen[i] {
			list = append(list, agent)
		}
	}
	return list
}

func evidenceFor(agent *contract.RegistryEntry, intents map[string]float64, domains []string) float64 {
	best, named := 0.0, 0
	for _, intent := range agent.Match.Intent {
		best = max(best, intents[intent])
	}
	for _, domain := range agent.Match.Domains {
		if slices.Contains(domains, domain) {
			named++
		}
	}
	return best + domainWeight*float64(min(named, mostOfDomains))
}

// maxPromptExamples is how many of an agent's examples the prompt chooses from.
const maxPromptExamples = 8

// promptAgents is what the prompt says of the agents.
func promptAgents(agents []*contract.RegistryEntry) []prompts.Agent {
	list := make([]prompts.Agent, len(agents))
	for i, a := range agents {
		list[i] = prompts.Agent{
			ID: a.ID, Intents: a.Match.Intent, Domains: a.Match.Domains,
			Description: a.Description, Examples: someExamples(a), NotFor: a.NotFor,
		}
	}
	return list
}

// someExamples takes the first example of each intent, then the second of each:
// the few that are shown stand for as many intents as they can.
func someExamples(a *contract.RegistryEntry) []string {
	var list []string
	for nth, more := 0, true; more; nth++ {
		more = false
		for _, intent := range a.Match.Intent {
			if examples := a.Examples[intent]; nth < len(examples) {
				if len(list) == maxPromptExamples {
					return list
				}
				list, more = append(list, examples[nth]), true
			}
		}
	}
	return list
}
