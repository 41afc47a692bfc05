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
	OnlyAgent string // the one agent the request asked for; "" = any
	// Decision holds the classification and, as candidates, the near misses,
	// best first.
	Decision *contract.Decision
	Reason   string // ReasonNoMatch …
}

// Unsupported explains the request's refusal to its caller.
func Unsupported(u *Unmet) *contract.Unsupported {
	a := newExplainer(u)
	return &contract.Unsupported{
		Reason:          u.Reason,
		Detail:          a.explain(),
		Nearest:         a.nearMisses,
		AcceptedIntents: limitAccepted(a.intents),
		AcceptedDomains: limitAccepted(a.domains),
		Examples:        a.pickExamples(),
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

// isUnderstood reports whether the request has an intent that the caller may know.
// A request that only hidden agents serve is described like one that no agent
// serves.
func (u *Unmet) isUnderstood() bool {
	intent, usable := u.Decision.Classification.Intent, visibility.Usable(u.Catalogue, u.Caller)
	return intent != contract.Unknown && (usable.All() || usable.HasIntent(intent))
}

// explainer is an Unmet with the agents and labels that its caller may use.
type explainer struct {
	*Unmet
	usable           visibility.Agents
	intents          []string            // of the usable agents, sorted
	domains          []string            // likewise
	nearestCandidate *contract.Candidate // the nearest usable agent; nil if no agent is near
	nearMisses       []contract.NearestMiss
}

func newExplainer(u *Unmet) *explainer {
	usable := visibility.Usable(u.Catalogue, u.Caller)
	a := &explainer{Unmet: u, usable: usable, intents: usable.Intents(), domains: usable.Domains(), nearMisses: []contract.NearestMiss{}}
	a.findNearest()
	return a
}

// findNearest lists the near misses the caller may see, each agent once.
func (a *explainer) findNearest() {
	for i := range a.Decision.Candidates {
		c := &a.Decision.Candidates[i]
		listed := slices.ContainsFunc(a.nearMisses, func(n contract.NearestMiss) bool { return n.AgentID == c.AgentID })
		if listed || !a.usable.Has(c.AgentID) {
			continue
		}
		if a.nearestCandidate == nil {
			a.nearestCandidate = c
		}
		a.nearMisses = append(a.nearMisses, contract.NearestMiss{
			AgentID: c.AgentID, Score: c.Score, MissingScore: a.missingScore(c), Gates: append([]contract.Gate{}, c.Gates...),
		})
		if len(a.nearMisses) == maxNearest {
			return
		}
	}
}

// missingScore is what a candidate lacks to the threshold, in whole hundredths as
// the matcher counts.
func (a *explainer) missingScore(c *contract.Candidate) float64 {
	lack := a.Catalogue.Routing.ThresholdHundredths() - int(math.Round(c.Score*100))
	return float64(max(0, lack)) / 100
}

// pickExamples are the declared utterances nearest to the prompt and, where there
// are too few of them, the first of each intent: those of the nearest agents
// before those of the others.
func (a *explainer) pickExamples() []string {
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
	for i := range a.nearMisses {
		add(a.Catalogue.Agent(a.nearMisses[i].AgentID))
	}
	for _, agent := range a.usable.List() {
		if len(texts) == maxExamples {
			break
		}
		add(agent)
	}
	return texts
}

func limitAccepted(list []string) []string {
	return append([]string{}, list[:min(len(list), maxAccepted)]...)
}
