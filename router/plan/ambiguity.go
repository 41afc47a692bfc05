package plan

import (
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

// maxOptions bounds the readings that a caller may choose from.
const maxOptions = 5

// findAmbiguity returns why the router must not choose for the caller, and the
// readings to choose from; "" if it may choose. Divergence comes first: a request
// with several intents is split, or the caller chooses one. Only a request that was
// not split can be ambiguous. Readings that only other callers may use do not
// count, so there is nothing to ask if fewer than two remain.
func findAmbiguity(in *Input) (reason string, options []contract.ClarificationOption) {
	intents := subtaskIntents(&in.Classification)
	switch {
	case len(intents) >= 2 && !in.Catalogue.Routing.AutoSplitIfConflict:
		reason, options = fallback.ReasonDivergent, divergentOptions(in)
	case len(intents) == 0:
		reason, options = fallback.ReasonAmbiguous, ambiguousOptions(in)
	}
	if len(options) < 2 {
		return "", nil
	}
	return reason, options
}

// subtaskIntents returns the distinct intents of the subtasks that have their own.
func subtaskIntents(c *contract.Classification) (intents []string) {
	for _, s := range c.Subtasks {
		if s.Intent != "" {
			intents = appendUnique(intents, s.Intent)
		}
	}
	return intents
}

// divergentOptions returns one option for each intent of the parts.
func divergentOptions(in *Input) (options []contract.ClarificationOption) {
	for _, part := range splitParts(in) {
		if in.canUse(part.Intent) {
			options = addOption(options, part.Intent, part.Domains)
		}
	}
	return options
}

// ambiguousOptions returns the winner of the lexical classifier and the runners-up
// that score about as high and belong to other agents. The classification of a
// model has no runner-up, so its score never makes it ambiguous.
func ambiguousOptions(in *Input) (options []contract.ClarificationOption) {
	c := &in.Classification
	if c.Source != contract.SourceLexical || c.Intent == contract.Unknown {
		return nil
	}
	for _, next := range c.Alternatives {
		if c.Confidence-next.Confidence >= in.Catalogue.Routing.AmbiguityThreshold {
			break // alternatives are sorted, and most requests end the loop here
		}
		if options == nil && in.canUse(c.Intent) {
			options = addOption(options, c.Intent, c.Domains)
		}
		if in.canUse(next.Intent) && !in.sharesAgent(c.Intent, next.Intent) {
			options = addOption(options, next.Intent, c.Domains)
		}
	}
	return options
}

// canUse reports whether an agent that the caller may use, and did not exclude,
// declares the intent.
func (in *Input) canUse(intent string) bool {
	return slices.ContainsFunc(in.Catalogue.Agents, func(a *contract.RegistryEntry) bool {
		return slices.Contains(a.Match.Intent, intent) && in.mayConsider(a.ID)
	})
}

// sharesAgent reports whether one agent declares both intents: then it does not
// matter which of them the caller means.
func (in *Input) sharesAgent(a, b string) bool {
	return slices.ContainsFunc(in.Catalogue.Agents, func(agent *contract.RegistryEntry) bool {
		return slices.Contains(agent.Match.Intent, a) && slices.Contains(agent.Match.Intent, b) && in.mayConsider(agent.ID)
	})
}

func (in *Input) mayConsider(agentID string) bool {
	return (in.OnlyAgent == "" || in.OnlyAgent == agentID) && in.Caller.MayUse(agentID)
}

// addOption appends a reading unless its intent is listed already.
func addOption(options []contract.ClarificationOption, intent string, domains []string) []contract.ClarificationOption {
	known := slices.ContainsFunc(options, func(o contract.ClarificationOption) bool { return o.Intent == intent })
	if known || len(options) == maxOptions {
		return options
	}
	return append(options, contract.ClarificationOption{
		ID: strconv.Itoa(len(options) + 1), Label: contract.OptionLabel(intent, domains), Intent: intent, Domains: append([]string{}, domains...),
	})
}
