package fallback

import (
	"math"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/visibility"
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
	Catalogue *capabilities.Catalogue
	Lexical   *lexical.Model // trained on Registry; nil leaves the nearest examples out
	Caller    *contract.Caller
	Prompt    string
	Only      string // the one agent the request asked for; "" = any
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

// VisibleTo returns the part of the unmet request that its caller may see.
func (u *Unmet) VisibleTo(filter *visibility.Filter) *Unmet {
	if !filter.Conceals(u.Decision) {
		return u
	}
	visible := *u
	visible.Decision = filter.Decision(u.Decision)
	if len(visible.Decision.Candidates) == 0 {
		visible.Reason = ReasonNoMatch
	}
	return &visible
}

// understood reports whether the request has an intent that the caller may know.
// A request that only hidden agents serve is described like one that no agent
// serves.
func (u *Unmet) understood() bool {
	intent, usable := u.Decision.Classification.Intent, visibility.Usable(u.Catalogue, u.Caller)
	return intent != contract.Unknown && (usable.All() || usable.HasIntent(intent))
}

// answer is an Unmet with the agents and labels that its caller may use.
type answer struct {
	*Unmet
	usable  visibility.Agents
	intents []string            // of the usable agents, sorted
	domains []string            // likewise
	best    *contract.Candidate // the nearest usable agent; nil if no agent is near
	nearest []contract.NearestMiss
}

func newAnswer(u *Unmet) *answer {
	usable := visibility.Usable(u.Catalogue, u.Caller)
	a := &answer{Unmet: u, usable: usable, intents: usable.Intents(), domains: usable.Domains(), nearest: []contract.NearestMiss{}}
	a.findNearest()
	return a
}

// findNearest lists the near misses the caller may see, each agent once.
func (a *answer) findNearest() {
	for i := range a.Decision.Candidates {
		c := &a.Decision.Candidates[i]
		listed := slices.ContainsFunc(a.nearest, func(n contract.NearestMiss) bool { return n.AgentID == c.AgentID })
		if listed || !a.usable.Has(c.AgentID) {
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
	lack := a.Catalogue.Routing.ThresholdHundredths() - int(math.Round(c.Score*100))
	return float64(max(0, lack)) / 100
}

// examples are the declared utterances nearest to the prompt and, where there
// are too few of them, the first of each intent: those of the nearest agents
// before those of the others.
func (a *answer) examples() []string {
	texts := []string{}
	if a.Lexical != nil {
		texts = append(texts, a.Lexical.NearestExamples(a.Prompt, maxExamples, a.usable.HasExampleOf)...)
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
		add(a.Catalogue.Agent(a.nearest[i].AgentID))
	}
	for _, agent := range a.usable.List() {
		if len(texts) == maxExamples {
			break
		}
		add(agent)
	}
	return texts
}

func capped(list []string) []string {
	return append([]string{}, list[:min(len(list), maxAccepted)]...)
}
