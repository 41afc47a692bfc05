package fallback

import (
	"maps"
	"math"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// Reasons why nobody may serve a request.
const (
	ReasonNoMatch       = "no_match"       // no agent's score reaches the threshold
	ReasonLowConfidence = "low_confidence" // the classification is not sure enough
	ReasonAmbiguous     = "ambiguous"      // two readings are as good, for different agents
	ReasonDivergent     = "divergent"      // several requests in one, and the registry does not split
	ReasonNotEntitled   = "not_entitled"   // only agents the caller may not use would fit
	ReasonGated         = "gated"          // an agent fits but for a condition it sets
)

// What an answer holds at most; registries may be large.
const (
	maxAccepted = 50
	maxNearest  = 5
	maxExamples = 5
)

// Unmet is a request nobody may serve.
type Unmet struct {
	Registry *capabilities.Snapshot
	Lexical  *lexical.Model // trained on Registry; nil leaves the nearest examples out
	Caller   *contract.Caller
	Prompt   string
	Only     string // the one agent the request asked for; "" = any
	// Decision holds the classification and, as candidates, the near misses,
	// best first.
	Decision *contract.Decision
	Reason   string // ReasonNoMatch …
}

// Unsupported explains the request's refusal to its caller.
func Unsupported(u *Unmet) *contract.Unsupported {
	a := newAnswer(u)
	return &contract.Unsupported{
		Reason:          u.Reason,
		Detail:          a.detail(),
		Nearest:         a.nearest,
		AcceptedIntents: capped(a.intents),
		AcceptedDomains: capped(a.domains),
		Examples:        a.examples(),
	}
}

// answer is an Unmet with what its caller may see.
type answer struct {
	*Unmet
	all     bool                      // the caller may use every agent
	agents  []*contract.RegistryEntry // the caller may use, by id
	intents []string                  // they declare: sorted
	domains []string                  // likewise
	best    *contract.Candidate       // the nearest of them; nil when none is near
	nearest []contract.NearestMiss
}

// usesAll reports whether the caller may use every agent.
func (u *Unmet) usesAll() bool { return u.Caller != nil && (u.Caller.AllAgents || u.Caller.AllScopes) }

// mayUse fails closed: without a caller nobody may use anything.
func (u *Unmet) mayUse(agentID string) bool { return u.Caller != nil && u.Caller.MayUse(agentID) }

// understood reports whether the request was taken for something the caller may
// know of. What only agents serve that it may not use is told like what nobody
// serves.
func (u *Unmet) understood() bool {
	intent := u.Decision.Classification.Intent
	if intent == contract.Unknown || u.usesAll() {
		return intent != contract.Unknown
	}
	return slices.ContainsFunc(u.Registry.Agents, func(agent *contract.RegistryEntry) bool {
		return slices.Contains(agent.Match.Intent, intent) && u.mayUse(agent.ID)
	})
}

func newAnswer(u *Unmet) *answer {
	a := &answer{Unmet: u, nearest: []contract.NearestMiss{}, all: u.usesAll()}
	if a.all {
		a.agents, a.intents, a.domains = u.Registry.Agents, u.Registry.Intents, u.Registry.Domains
	} else {
		a.findUsable()
	}
	a.findNearest()
	return a
}

// findUsable collects what a caller with a list of agents may use.
func (a *answer) findUsable() {
	intents, domains := map[string]bool{}, map[string]bool{}
	for _, agent := range a.Registry.Agents {
		if !a.mayUse(agent.ID) {
			continue
		}
		a.agents = append(a.agents, agent)
		for _, intent := range agent.Match.Intent {
			intents[intent] = true
		}
		for _, domain := range agent.Match.Domains {
			domains[domain] = true
		}
	}
	delete(domains, contract.AnyDomain)
	a.intents, a.domains = slices.Sorted(maps.Keys(intents)), slices.Sorted(maps.Keys(domains))
}

// findNearest lists the near misses the caller may see, each agent once.
func (a *answer) findNearest() {
	for i := range a.Decision.Candidates {
		c := &a.Decision.Candidates[i]
		listed := slices.ContainsFunc(a.nearest, func(n contract.NearestMiss) bool { return n.AgentID == c.AgentID })
		if listed || !a.mayUse(c.AgentID) || a.Registry.Agent(c.AgentID) == nil {
			continue
		}
		if a.best == nil {
			a.best = c
		}
		a.nearest = append(a.nearest, contract.NearestMiss{
			AgentID: c.AgentID, Score: c.Score, MissingScore: a.missing(c), Gates: append([]contract.Gate{}, c.Gates...),
		})
		if len(a.nearest) == maxNearest {
			return
		}
	}
}

// missing is what a candidate lacks to the threshold, in whole hundredths as
// the matcher counts.
func (a *answer) missing(c *contract.Candidate) float64 {
	lack := a.Registry.Routing.ThresholdHundredths() - int(math.Round(c.Score*100))
	return float64(max(0, lack)) / 100
}

// examples are the declared utterances nearest to the prompt and, where there
// are too few of them, the first of each intent: those of the nearest agents
// before those of the others.
func (a *answer) examples() []string {
	texts := []string{}
	if a.Lexical != nil {
		texts = append(texts, a.Lexical.Nearest(a.Prompt, maxExamples, a.declares)...)
	}
	add := func(agent *contract.RegistryEntry) {
		for _, intent := range agent.Match.Intent {
			list := agent.Examples[intent]
			if len(list) > 0 && len(texts) < maxExamples && !slices.Contains(texts, list[0]) {
				texts = append(texts, list[0])
			}
		}
	}
	for i := range a.nearest {
		add(a.Registry.Agent(a.nearest[i].AgentID))
	}
	for _, agent := range a.agents {
		if len(texts) == maxExamples {
			break
		}
		add(agent)
	}
	return texts
}

// declares reports whether an agent the caller may use has the example.
func (a *answer) declares(intent, example string) bool {
	return a.all || slices.ContainsFunc(a.agents, func(agent *contract.RegistryEntry) bool {
		return slices.Contains(agent.Match.Intent, intent) && slices.Contains(agent.Examples[intent], example)
	})
}

func capped(list []string) []string {
	return append([]string{}, list[:min(len(list), maxAccepted)]...)
}
