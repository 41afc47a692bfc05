package fallback

import (
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Reasons why no agent may serve a request.
const (
	ReasonNoMatch       = "no_match"       // no agent's score reaches the threshold
	ReasonLowConfidence = "low_confidence" // the confidence of the classification is too low
	ReasonAmbiguous     = "ambiguous"      // two readings are equally likely, for different agents
	ReasonDivergent     = "divergent"      // several requests in one, and the registry does not split
	ReasonNotEntitled   = "not_entitled"   // only agents that the caller may not use fit
	ReasonGated         = "gated"          // an agent fits, but the request does not meet its requirements
)

// Limits of an answer, because registries may be large.
const (
	maxAccepted = 50
	maxNearest  = 5
	maxExamples = 5
	// maxTriedExamples bounds the examples that are checked for one answer, because
	// each is classified.
	maxTriedExamples = 12
	maxTriedOfIntent = 3
)

// Unmet is a request that no agent may serve. It is not changed.
type Unmet struct {
	Catalogue *capabilities.Catalogue
	Lexical   *lexical.Model // trained on Catalogue; nil leaves the nearest examples out
	Caller    *contract.Caller
	Prompt    string
	Locale    string          // BCP 47; "" = unknown
	Turns     []contract.Turn // before the prompt, oldest first
	OnlyAgent string          // the agent that the request names; "" = any
	// Decision contains the classification and, as candidates, the near misses, best
	// first.
	Decision *contract.Decision
	Reason   string // ReasonNoMatch …
	// Serves reports whether an agent would get the text as a request of the caller;
	// nil = any text.
	Serves func(text string) bool
}

// Unsupported answers the request by policy B. Its detail is in the language of the
// request, except for names of the registry.
func Unsupported(u *Unmet) *contract.Unsupported {
	a := newExplainer(u, u.language().refusal)
	return &contract.Unsupported{
		Reason:          u.Reason,
		Detail:          a.explain(),
		Needed:          contract.Needed{Score: float64(u.Catalogue.Routing.ThresholdHundredths()) / 100, Confidence: a.minConfidence()},
		Nearest:         a.nearMisses,
		NearestReading:  a.nearestReading(),
		AcceptedIntents: limitAccepted(a.intents),
		AcceptedDomains: limitAccepted(a.domains),
		Examples:        a.pickExamples(),
	}
}

// language returns the language of the texts for the caller.
func (u *Unmet) language() answerLanguage {
	return chooseLanguage(&LanguageSource{Configured: u.Catalogue.Fallback.Language, Locale: u.Locale, Prompt: u.Prompt, Turns: u.Turns})
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

// explainer explains an unmet request with the agents and labels that its caller may
// use.
type explainer struct {
	*Unmet
	texts            *refusalText
	usable           visibility.Agents
	intents          []string            // of the usable agents, sorted
	domains          []string            // likewise
	nearestCandidate *contract.Candidate // the nearest usable agent; nil if no agent is near
	nearMisses       []contract.NearestMiss
}

func newExplainer(u *Unmet, texts *refusalText) *explainer {
	usable := visibility.Usable(u.Catalogue, u.Caller)
	a := &explainer{Unmet: u, texts: texts, usable: usable, intents: usable.Intents(), domains: usable.Domains(), nearMisses: []contract.NearestMiss{}}
	a.findNearest()
	return a
}

// findNearest lists the near misses that the caller may use, each agent once.
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

// missingScore is what the candidate lacks to the threshold, in whole hundredths like
// the scores of the matcher.
func (a *explainer) missingScore(c *contract.Candidate) float64 {
	lack := a.Catalogue.Routing.ThresholdHundredths() - int(math.Round(c.Score*100))
	return float64(max(0, lack)) / 100
}

// pickExamples returns the declared examples nearest to the prompt. If there are too few,
// one of each intent is added, those of the nearest intent and agents first. Examples that no agent
// would get, and the prompt itself, are left out.
func (a *explainer) pickExamples() []string {
	texts := []string{}
	tried := map[string]bool{strings.TrimSpace(a.Prompt): true}
	add := func(text string) (added bool) {
		if len(texts) == maxExamples || len(tried) > maxTriedExamples || tried[text] {
			return false
		}
		tried[text] = true
		if a.Serves == nil || a.Serves(text) {
			texts, added = append(texts, text), true
		}
		return added
	}
	if a.Lexical != nil {
		for _, text := range a.Lexical.NearestExamples(a.Prompt, maxExamples+1, a.usable.HasExampleOf) {
			add(text)
		}
	}
	addOfIntent := func(agent *contract.RegistryEntry, intent string) (found bool) {
		list := agent.Examples[intent]
		return slices.ContainsFunc(list[:min(len(list), maxTriedOfIntent)], func(text string) bool {
			return slices.Contains(texts, text) || add(text)
		})
	}
	addOfEachIntent := func(agent *contract.RegistryEntry) {
		for _, intent := range agent.Match.Intent {
			addOfIntent(agent, intent)
		}
	}
	if near, ok := a.nearestIntent(); ok && a.nearestCandidate == nil {
		for _, agent := range a.usable.List() {
			if addOfIntent(agent, near) {
				break
			}
		}
	}
	for i := range a.nearMisses {
		addOfEachIntent(a.Catalogue.Agent(a.nearMisses[i].AgentID))
	}
	for _, agent := range a.usable.List() {
		if len(texts) == maxExamples || len(tried) > maxTriedExamples {
			break
		}
		addOfEachIntent(agent)
	}
	return texts
}

func limitAccepted(list []string) []string {
	return append([]string{}, list[:min(len(list), maxAccepted)]...)
}
