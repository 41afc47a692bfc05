package fallback

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
)

// maxNamed is how many names a sentence lists.
const maxNamed = 8

// detail says in one sentence why, and what to do about it.
func (a *answer) detail() string {
	if len(a.Catalogue.Agents) == 0 {
		return "the registry declares no agent yet"
	}
	if len(a.usable.List()) == 0 {
		return "you may not use any agent of this registry: ask its operator for a token with an agent scope"
	}
	switch a.Reason {
	case ReasonLowConfidence:
		return a.lowConfidence()
	case ReasonAmbiguous:
		return a.ambiguous()
	case ReasonDivergent:
		return a.divergent()
	case ReasonNotEntitled:
		return "no agent you may use serves this request: ask for one of the accepted intents, or ask the operator for access to more agents"
	case ReasonGated:
		return a.gated()
	}
	return a.noMatch()
}

func (a *answer) noMatch() string {
	switch {
	case a.best == nil && a.Only != "":
		return a.restricted()
	case a.best == nil:
		return a.notUnderstood()
	}
	if a.missing(a.best) == 0 {
		return a.gated()
	}
	text := fmt.Sprintf("%s is nearest with %.2f of the %.2f needed", a.best.AgentID, a.best.Score, float64(a.Catalogue.Routing.ThresholdHundredths())/100)
	if advice := a.advice(); advice != "" {
		text += ": " + advice
	}
	return text
}

// advice is the least a caller can change to reach the nearest agent: the size
// and, if that is not enough, a domain where the intent fits, else the intent.
func (a *answer) advice() string {
	agent := a.Catalogue.Agent(a.best.AgentID)
	lack := a.missing(a.best)
	var steps []string
	if a.best.Parts.Constraints < 0 {
		steps = append(steps, fmt.Sprintf("shorten the request, it takes %d tokens at most", agent.Constraints.MaxTokens))
		lack += a.best.Parts.Constraints
	}
	switch {
	case lack <= 0:
	case a.best.Parts.Intent > 0:
		others := slices.DeleteFunc(slices.Sorted(slices.Values(agent.Match.Domains)), func(d string) bool {
			return d == contract.AnyDomain || slices.Contains(a.best.MatchedDomains, d)
		})
		steps = appendAdvice(steps, "name one of its domains: ", others)
	default:
		steps = appendAdvice(steps, "ask for one of its intents: ", slices.Sorted(slices.Values(agent.Match.Intent)))
	}
	return strings.Join(steps, "; ")
}

// notUnderstood is for a request that fits nobody at all. Who may not use every
// agent is not told whether it fits an agent of others.
func (a *answer) notUnderstood() string {
	text := "no intent of this registry fits the request"
	understood := a.understood()
	if understood || !a.usable.All() {
		text = "no agent you may use serves this request"
	}
	if near, ok := a.nearIntent(); ok && !understood {
		text += fmt.Sprintf(" (%s is nearest, with %.2f of the %.2f needed)", near.Intent, near.Confidence, a.minConfidence())
	}
	return text + ": ask for one of the accepted intents: " + enumerate(a.intents)
}

// restricted is for a request that names one agent, which fits nothing of it.
// What is not there and what the caller may not use are told alike.
func (a *answer) restricted() string {
	if !a.usable.Has(a.Only) {
		return "agent_id names " + a.Only + ", which is no agent you may use: leave agent_id out, or name another"
	}
	return "agent_id asks for " + a.Only + " alone, which serves neither the intent nor a domain of the request: leave agent_id out, or ask for one of its intents: " +
		enumerate(slices.Sorted(slices.Values(a.Catalogue.Agent(a.Only).Match.Intent)))
}

func (a *answer) lowConfidence() string {
	clf := &a.Decision.Classification
	as := ""
	if slices.Contains(a.intents, clf.Intent) {
		as = " as " + clf.Intent
	}
	text := fmt.Sprintf("the request reads%s with a confidence of %.2f only, %.2f is needed", as, clf.Confidence, a.minConfidence())
	return text + ": say more exactly what is wanted, with one of the accepted intents: " + enumerate(a.intents)
}

// ambiguous names both readings, if the caller may know of both.
func (a *answer) ambiguous() string {
	clf := &a.Decision.Classification
	near, ok := a.nearIntent()
	if !ok || !slices.Contains(a.intents, clf.Intent) {
		return "the request has several readings that are as good, for different agents: say which of the accepted intents is wanted"
	}
	return fmt.Sprintf("the request reads as %s (%.2f) and as %s (%.2f), which different agents serve: say which one is wanted",
		clf.Intent, clf.Confidence, near.Intent, near.Confidence)
}

// nearIntent is the best alternative reading the caller may know of.
func (a *answer) nearIntent() (contract.IntentScore, bool) {
	for _, s := range a.Decision.Classification.Alternatives {
		if slices.Contains(a.intents, s.Intent) {
			return s, true
		}
	}
	return contract.IntentScore{}, false
}

func (a *answer) divergent() string {
	var asked []string
	for _, s := range a.Decision.Classification.Subtasks {
		if slices.Contains(a.intents, s.Intent) && !slices.Contains(asked, s.Intent) {
			asked = append(asked, s.Intent)
		}
	}
	of := ""
	if len(asked) > 1 {
		of = " (" + strings.Join(asked, ", ") + ")"
	}
	return "the request asks for several things" + of + " and this registry does not split requests: send one request for each"
}

// gated names the nearest agent that fits, and what it asks for.
func (a *answer) gated() string {
	for i := range a.nearest {
		n := &a.nearest[i]
		if n.MissingScore > 0 || len(n.Gates) == 0 {
			continue
		}
		reasons := make([]string, len(n.Gates))
		for k, g := range n.Gates {
			reasons[k] = g.Reason
		}
		return fmt.Sprintf("%s fits with %.2f but may not take the request: %s", n.AgentID, n.Score, strings.Join(reasons, "; "))
	}
	return "the agents that fit may not take the request"
}

func (a *answer) minConfidence() float64 {
	return classifier.MinConfidence(a.Catalogue.Routing, a.Decision.Classification.Source)
}

// appendAdvice appends advice with the names it is about; without names it is none.
func appendAdvice(steps []string, what string, names []string) []string {
	if len(names) == 0 {
		return steps
	}
	return append(steps, what+enumerate(names))
}

func enumerate(names []string) string {
	if n := len(names) - maxNamed; n > 0 {
		return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}
