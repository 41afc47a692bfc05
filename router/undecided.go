package router

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

// reasonTopK is why a subtask is left out that somebody could have done.
const reasonTopK = "topk_reached"

// undecided says why the rules may not choose for the caller, with the readings
// there are; "" when they may. Divergence is looked at first (003 §6): several
// intents are split, or the caller is asked. Only a request that was not split
// can be ambiguous. Readings only others could use are none: with fewer than two
// left there is nothing to ask.
func undecided(j *job, clf *contract.Classification) (reason string, options []contract.ClarificationOption) {
	own := ownIntents(clf)
	switch {
	case len(own) >= 2 && !j.view.Registry.Routing.AutoSplitIfConflict:
		reason, options = fallback.ReasonDivergent, divergentOptions(j, clf)
	case len(own) == 0:
		reason, options = fallback.ReasonAmbiguous, ambiguousOptions(j, clf)
	}
	if len(options) < 2 {
		return "", nil
	}
	return reason, options
}

// ownIntents are the distinct intents that subtasks carry themselves.
func ownIntents(clf *contract.Classification) []string {
	var own []string
	for _, s := range clf.Subtasks {
		if s.Intent != "" {
			own = appendNew(own, s.Intent)
		}
	}
	return own
}

// divergentOptions are the subtasks, one an intent.
func divergentOptions(j *job, clf *contract.Classification) (options []contract.ClarificationOption) {
	for _, pt := range partsOf(j, clf) {
		if j.usable(pt.intent) {
			options = addOption(options, pt.intent, pt.domains)
		}
	}
	return options
}

// ambiguousOptions are the lexical classifier's winner and the runners-up that
// are as good and belong to other agents. A model's classification has no
// runner-up and is never ambiguous by score.
func ambiguousOptions(j *job, clf *contract.Classification) (options []contract.ClarificationOption) {
	if clf.Source != contract.SourceLexical || clf.Intent == contract.Unknown {
		return nil
	}
	for _, next := range clf.Alternatives {
		if clf.Confidence-next.Confidence >= j.view.Registry.Routing.AmbiguityThreshold {
			break // best first; and most requests look at no agent here
		}
		if options == nil && j.usable(clf.Intent) {
			options = addOption(options, clf.Intent, clf.Domains)
		}
		if j.usable(next.Intent) && !j.shareAgent(clf.Intent, next.Intent) {
			options = addOption(options, next.Intent, clf.Domains)
		}
	}
	return options
}

// usable reports whether an agent the caller may use, and did not exclude,
// declares the intent.
func (j *job) usable(intent string) bool {
	return slices.ContainsFunc(j.view.Registry.Agents, func(a *contract.RegistryEntry) bool {
		return slices.Contains(a.Match.Intent, intent) && j.considers(a.ID)
	})
}

// shareAgent reports whether one agent declares both intents: then it does not
// matter which of them was meant.
func (j *job) shareAgent(a, b string) bool {
	return slices.ContainsFunc(j.view.Registry.Agents, func(agent *contract.RegistryEntry) bool {
		return slices.Contains(agent.Match.Intent, a) && slices.Contains(agent.Match.Intent, b) && j.considers(agent.ID)
	})
}

func (j *job) considers(agentID string) bool {
	return (j.only == "" || j.only == agentID) && j.caller.MayUse(agentID)
}
