package classifier

import (
	"cmp"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/prompts"
)

// The score of an agent is the evidence for its best intent (0 to 1) plus that
// for up to two domains, as in the match. Domains together weigh less than an
// intent, because a prompt may contain several requests and name one domain.
const (
	domainWeight     = 0.3
	maxScoredDomains = 2
)

// shortlistAgents returns the agents that the model chooses from, in registry
// order. The accuracy of a model falls with the number of choices, so it is
// shown only the most relevant of many.
func (c *Classifier) shortlistAgents(in *Input) []*contract.RegistryEntry {
	agents := in.Catalogue.Learned
	if len(agents) <= c.cfg.ShortlistAbove || len(agents) <= c.cfg.ShortlistK {
		return agents
	}
	chosen := newShortlist(agents, c.cfg.ShortlistK)
	if in.Lexical != nil {
		chosen.addByEvidence(in.Lexical.GatherEvidence(in.Prompt))
		// A prompt such as "And on azure?" has little evidence. Use earlier
		// turns, latest first.
		for _, turn := range slices.Backward(latestTurns(in.History)) {
			if chosen.left == 0 {
				break
			}
			chosen.addByEvidence(in.Lexical.GatherEvidence(turn.Content))
		}
	}
	return chosen.fillUp()
}

// agentShortlist selects agents by evidence.
type agentShortlist struct {
	agents []*contract.RegistryEntry
	chosen []bool // by agent
	left   int    // remaining places
}

func newShortlist(agents []*contract.RegistryEntry, places int) *agentShortlist {
	return &agentShortlist{agents: agents, chosen: make([]bool, len(agents)), left: places}
}

// addByEvidence adds the agents with evidence, best first, then in registry
// order, while places remain.
func (s *agentShortlist) addByEvidence(e lexical.Evidence) {
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
		if score := evidenceScore(agent, intents, e.Domains); score > 0 && !s.chosen[i] {
			order = append(order, ranked{i, score})
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	for _, r := range order[:min(len(order), s.left)] {
		s.addAgent(r.agent)
	}
}

func (s *agentShortlist) addAgent(agent int) {
	s.chosen[agent] = true
	s.left--
}

// fillUp returns the selected agents. Remaining places go to the first agents
// of the registry, so that the model has a choice if the prompt uses unknown
// words.
func (s *agentShortlist) fillUp() []*contract.RegistryEntry {
	for i := 0; i < len(s.agents) && s.left > 0; i++ {
		if !s.chosen[i] {
			s.addAgent(i)
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

func evidenceScore(agent *contract.RegistryEntry, intents map[string]float64, domains []string) float64 {
	best, named := 0.0, 0
	for _, intent := range agent.Match.Intent {
		best = max(best, intents[intent])
	}
	for _, domain := range agent.Match.Domains {
		if slices.Contains(domains, domain) {
			named++
		}
	}
	return best + domainWeight*float64(min(named, maxScoredDomains))
}

// maxPromptExamples bounds the examples of an agent that the prompt chooses
// from.
const maxPromptExamples = 8

// promptAgents converts agents to the data of the prompt template. Their texts are masked:
// an agent that registered itself, or a correction, may have brought personal data.
func promptAgents(agents []*contract.RegistryEntry, mask func(text string) string) []prompts.Agent {
	list := make([]prompts.Agent, len(agents))
	for i, a := range agents {
		list[i] = prompts.Agent{
			ID: a.ID, Intents: a.Match.Intent, Domains: a.Match.Domains,
			Description: mask(a.Description), Examples: maskAll(pickExamples(a), mask), NotFor: maskAll(a.NotFor, mask),
		}
	}
	return list
}

func maskAll(texts []string, mask func(text string) string) []string {
	masked := make([]string, len(texts))
	for i, text := range texts {
		masked[i] = mask(text)
	}
	return masked
}

// pickExamples takes the first example of each intent, then the second of each,
// so that as many intents as possible are represented.
func pickExamples(a *contract.RegistryEntry) []string {
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
