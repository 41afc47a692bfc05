package router

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

// reasonTopK is why a subtask is left out that somebody could have done.
const reasonTopK = "topk_reached"

// undecided says why the rules may not choose for the caller, "" when they may.
// Divergence is looked at first (003 §6): several intents are split, or nothing
// is done. Only a request that was not split can be ambiguous.
func undecided(v *View, clf *contract.Classification) string {
	own := ownIntents(clf)
	switch {
	case len(own) >= 2 && !v.Registry.Routing.AutoSplitIfConflict:
		return fallback.ReasonDivergent
	case len(own) == 0 && ambiguous(v, clf):
		return fallback.ReasonAmbiguous
	}
	return ""
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

// ambiguous reports whether the lexical classifier's runner-up is as good as
// its winner and belongs to other agents. A model's classification has no
// runner-up and is never ambiguous by score.
func ambiguous(v *View, clf *contract.Classification) bool {
	if clf.Source != contract.SourceLexical || clf.Intent == contract.Unknown || len(clf.Alternatives) == 0 {
		return false
	}
	next := clf.Alternatives[0]
	if clf.Confidence-next.Confidence >= v.Registry.Routing.AmbiguityThreshold {
		return false
	}
	return !shareAgent(v, clf.Intent, next.Intent)
}

// shareAgent reports whether one agent declares both intents: then it does not
// matter which of them was meant.
func shareAgent(v *View, a, b string) bool {
	for _, agent := range v.Registry.Agents {
		if slices.Contains(agent.Match.Intent, a) && slices.Contains(agent.Match.Intent, b) {
			return true
		}
	}
	return false
}
