package fallback

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/email"
	"github.com/caprouter/caprouter/internal/lexical"
)

// maxListedNames is how many names a sentence lists.
const maxListedNames = 8

// minNearIntent is the least confidence of an intent that a text calls the nearest. Less
// likely ones are usually unrelated to the request.
const minNearIntent = 0.3

// explain states in one sentence for an end user why no agent serves the request, and
// what the user can do about it. Scores and confidences are in the other members of
// contract.Unsupported.
func (a *explainer) explain() string {
	if len(a.Catalogue.Agents) == 0 {
		return a.texts.noAgents
	}
	if len(a.usable.List()) == 0 {
		return a.texts.noneUsable
	}
	switch a.Reason {
	case ReasonLowConfidence:
		return a.explainLowConfidence()
	case ReasonAmbiguous:
		return a.explainAmbiguity()
	case ReasonDivergent:
		return a.explainDivergence()
	case ReasonNotEntitled:
		return a.texts.notEntitled
	case ReasonGated:
		return a.explainGates()
	}
	return a.explainNoMatch()
}

func (a *explainer) explainNoMatch() string {
	switch {
	case a.nearestCandidate == nil && a.OnlyAgent != "":
		return a.explainNamedAgent()
	case a.nearestCandidate == nil:
		return a.explainNotUnderstood()
	}
	if a.missingScore(a.nearestCandidate) == 0 {
		return a.explainGates()
	}
	if advice := a.suggestChange(); advice != "" {
		return advice
	}
	return a.explainNotUnderstood()
}

// suggestChange returns the least change to the request that reaches the nearest agent:
// a shorter prompt and, if that is not enough, a domain if the intent fits, or else
// an intent.
func (a *explainer) suggestChange() string {
	agent := a.Catalogue.Agent(a.nearestCandidate.AgentID)
	lack := a.missingScore(a.nearestCandidate)
	var steps []string
	if a.nearestCandidate.Parts.Constraints < 0 {
		// The matcher estimates a token for four bytes.
		steps = append(steps, fmt.Sprintf(a.texts.tooLong, 4*agent.Constraints.MaxTokens))
		lack += a.nearestCandidate.Parts.Constraints
	}
	switch {
	case lack <= 0:
	case a.nearestCandidate.Parts.Intent > 0:
		others := slices.DeleteFunc(slices.Sorted(slices.Values(agent.Match.Domains)), func(d string) bool {
			return d == contract.AnyDomain || slices.Contains(a.nearestCandidate.MatchedDomains, d)
		})
		steps = a.appendStep(steps, a.texts.noDomain, others)
	default:
		steps = a.appendStep(steps, a.texts.noIntent, a.nearestIntents())
	}
	return strings.Join(steps, a.texts.stepSeparator)
}

// nearestIntents returns the intents of all agents that are as near as the nearest one,
// sorted. From the domain alone it is not known which of them is meant.
func (a *explainer) nearestIntents() []string {
	intents := map[string]bool{}
	for i := range a.Decision.Candidates {
		c := &a.Decision.Candidates[i]
		if !a.usable.Has(c.AgentID) || c.Parts != a.nearestCandidate.Parts || !isSameSubtask(c, a.nearestCandidate) {
			continue
		}
		for _, intent := range a.Catalogue.Agent(c.AgentID).Match.Intent {
			intents[intent] = true
		}
	}
	return slices.Sorted(maps.Keys(intents))
}

func isSameSubtask(a, b *contract.Candidate) bool {
	if a.Subtask == nil || b.Subtask == nil {
		return a.Subtask == b.Subtask
	}
	return *a.Subtask == *b.Subtask
}

// explainNotUnderstood is for a request without a near agent. A caller that may not use
// every agent does not learn whether the request fits another agent.
func (a *explainer) explainNotUnderstood() string {
	if a.asksNothing() {
		return a.explainGreeting()
	}
	text := a.texts.nothingFits
	understood := a.isUnderstood()
	if understood || !a.usable.All() {
		text = a.texts.noneServes
	}
	if near, ok := a.nearestIntent(); ok {
		text += fmt.Sprintf(a.texts.nearest, near)
	}
	return text + fmt.Sprintf(a.texts.askFor, a.texts.joinNames(a.intents))
}

// explainNamedAgent is for a request that names one agent, which does not fit. An
// agent that does not exist and one that the caller may not use read alike.
func (a *explainer) explainNamedAgent() string {
	if !a.usable.Has(a.OnlyAgent) {
		return fmt.Sprintf(a.texts.namedHidden, a.OnlyAgent)
	}
	intents := slices.Sorted(slices.Values(a.Catalogue.Agent(a.OnlyAgent).Match.Intent))
	return fmt.Sprintf(a.texts.namedUnfit, a.OnlyAgent, a.texts.joinNames(intents))
}

func (a *explainer) explainLowConfidence() string {
	clf := &a.Decision.Classification
	if a.asksNothing() {
		return a.explainGreeting()
	}
	text := a.texts.unclear
	if slices.Contains(a.intents, clf.Intent) {
		text = fmt.Sprintf(a.texts.unclearIntent, clf.Intent)
	}
	return text + fmt.Sprintf(a.texts.describe, a.texts.joinNames(a.intents))
}

func (a *explainer) asksNothing() bool {
	return a.Prompt != "" && lexical.AsksNothing(email.Body(a.Prompt))
}

func (a *explainer) explainGreeting() string {
	return a.texts.asksNothing + fmt.Sprintf(a.texts.askFor, a.texts.joinNames(a.intents))
}

// explainAmbiguity names both readings if the caller may see both. If no other
// intent is close, the domain is ambiguous.
func (a *explainer) explainAmbiguity() string {
	clf := &a.Decision.Classification
	isTie := len(clf.Alternatives) > 0 && clf.Confidence-clf.Alternatives[0].Confidence < a.Catalogue.Routing.AmbiguityThreshold
	if !isTie && slices.Contains(a.intents, clf.Intent) {
		return fmt.Sprintf(a.texts.manyAgents, clf.Intent, a.texts.joinNames(a.domainsOf(clf.Intent)))
	}
	near, ok := a.visibleAlternative()
	if !ok || !slices.Contains(a.intents, clf.Intent) {
		return fmt.Sprintf(a.texts.manyIntents, a.texts.joinNames(a.intents))
	}
	return fmt.Sprintf(a.texts.twoIntents, clf.Intent, near.Intent)
}

// domainsOf returns the domains of the agents that declare the intent, sorted.
func (a *explainer) domainsOf(intent string) []string {
	domains := map[string]bool{}
	for _, agent := range a.usable.List() {
		if slices.Contains(agent.Match.Intent, intent) {
			for _, d := range agent.Match.Domains {
				domains[d] = true
			}
		}
	}
	delete(domains, contract.AnyDomain)
	return slices.Sorted(maps.Keys(domains))
}

// visibleAlternative is the best alternative reading that the caller may see.
func (a *explainer) visibleAlternative() (contract.IntentScore, bool) {
	for _, s := range a.Decision.Classification.Alternatives {
		if slices.Contains(a.intents, s.Intent) {
			return s, true
		}
	}
	return contract.IntentScore{}, false
}

// nearestIntent is the intent that a request that was not understood probably means.
func (a *explainer) nearestIntent() (intent string, ok bool) {
	near, ok := a.visibleAlternative()
	return near.Intent, ok && !a.isUnderstood() && near.Confidence >= minNearIntent
}

func (a *explainer) explainDivergence() string {
	var asked []string
	for _, s := range a.Decision.Classification.Subtasks {
		if slices.Contains(a.intents, s.Intent) && !slices.Contains(asked, s.Intent) {
			asked = append(asked, s.Intent)
		}
	}
	of := ""
	if len(asked) > 1 {
		of = fmt.Sprintf(a.texts.parentheses, strings.Join(asked, a.texts.nameSeparator))
	}
	return fmt.Sprintf(a.texts.severalTasks, of)
}

// explainGates names the nearest agent with a sufficient score, and the gates it fails.
func (a *explainer) explainGates() string {
	for i := range a.nearMisses {
		n := &a.nearMisses[i]
		if n.MissingScore > 0 || len(n.Gates) == 0 {
			continue
		}
		return fmt.Sprintf(a.texts.gated, n.AgentID, a.texts.joinGates(n.Gates))
	}
	return a.texts.gatedHidden
}

func (a *explainer) minConfidence() float64 {
	return classifier.MinConfidence(a.Catalogue.Routing, a.Decision.Classification.Source)
}

// appendStep appends the step unless there are no names for it.
func (a *explainer) appendStep(steps []string, format string, names []string) []string {
	if len(names) == 0 {
		return steps
	}
	return append(steps, fmt.Sprintf(format, a.texts.joinNames(names)))
}
