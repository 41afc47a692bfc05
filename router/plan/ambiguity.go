package plan

import (
	"math"
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// maxOptions bounds the readings that a caller may choose from.
const maxOptions = 5

// findDivergence returns the intents to choose from, if the request has several and
// the registry does not split requests. Readings that only other callers may use do
// not count, so there is nothing to ask if fewer than two remain.
func (p *planner) findDivergence(parts []Part) (options []contract.ClarificationOption) {
	in := p.in
	if in.Catalogue.Routing.AutoSplitIfConflict || len(subtaskIntents(&in.Classification)) < 2 {
		return nil
	}
	for i := range parts {
		if parts[i].Intent == contract.Unknown || !in.canUse(parts[i].Intent) {
			continue
		}
		options = p.addOption(options, parts[i].Intent, &parts[i])
		for _, near := range in.nearIntents(&parts[i]) {
			options = p.addOption(options, near.Intent, &parts[i])
		}
	}
	if len(options) < 2 {
		return nil
	}
	return options
}

// subtaskIntents returns the distinct known intents of the subtasks that have their own.
func subtaskIntents(c *contract.Classification) (intents []string) {
	for _, s := range c.Subtasks {
		if s.Intent != "" && s.Intent != contract.Unknown {
			intents = appendUnique(intents, s.Intent)
		}
	}
	return intents
}

// nearIntents returns the intents that a part may mean, likeliest first: its own, and
// those whose confidence is lower by less than the ambiguity threshold. It returns nil
// if there are fewer than two that the caller may use. The classification of a model
// has no runner-up, so its score never decides this.
func (in *Input) nearIntents(part *Part) (near []contract.IntentScore) {
	if !in.hasReadings(part) {
		return nil
	}
	for _, next := range part.runnersUp {
		if part.Confidence-next.Confidence >= in.Catalogue.Routing.AmbiguityThreshold {
			break // runners-up are sorted, and most requests end the loop here
		}
		if near == nil && in.canUse(part.Intent) {
			near = append(near, contract.IntentScore{Intent: part.Intent, Confidence: part.Confidence})
		}
		if next.Intent != part.Intent && in.canUse(next.Intent) {
			near = append(near, next)
		}
	}
	if len(near) < 2 {
		return nil
	}
	return near[:min(len(near), 1+matcher.MaxTied)]
}

// hasReadings reports whether the part may mean another intent than its own.
func (in *Input) hasReadings(part *Part) bool {
	return part.Intent != contract.Unknown && in.Classification.Source != contract.SourceLLM && in.Classification.Source != contract.SourceCache
}

// resolveIntent decides between the intents that a part may mean. If one agent
// declares all of them, it does not matter to the router which is meant: they are
// tied, and the query is changed to find such agents. If different agents serve them,
// the caller must choose: the options are returned.
func (p *planner) resolveIntent(part *Part, q *matcher.Query) (options []contract.ClarificationOption) {
	near := p.in.nearIntents(part)
	if near == nil || p.in.sharesAgent(near) {
		if together := p.in.readingsOfAgent(part, q.MinConfidence); len(together) > len(near) {
			near = together
		}
	}
	if near == nil {
		return nil
	}
	if near[0].Intent == part.Intent && p.in.sharesAgent(near) {
		tied := *q
		for _, reading := range near[1:] {
			tied.Tied = append(tied.Tied, reading.Intent)
			tied.Confidence += reading.Confidence
		}
		tied.Confidence = math.Round(min(1, tied.Confidence)*1e4) / 1e4
		if p.hasHit(&tied) {
			*q, part.Alternatives = tied, near
			part.Confidence = tied.Confidence
			return nil
		}
		near = slices.DeleteFunc(near, func(reading contract.IntentScore) bool {
			single := *q
			single.Intent = reading.Intent
			return !p.hasHit(&single)
		})
	}
	for _, reading := range near {
		options = p.addOption(options, reading.Intent, part)
	}
	if len(options) < 2 {
		return nil
	}
	return options
}

// minReadingShare is the least confidence of a reading, relative to the likeliest one, for
// the two to be tied.
const minReadingShare = 0.2

// readingsOfAgent returns the readings of a part that one agent serves, if they are
// confident enough together although none is by itself: the agent is known, and the
// intent is not. Otherwise it returns nil.
func (in *Input) readingsOfAgent(part *Part, minConfidence float64) []contract.IntentScore {
	if part.Confidence >= minConfidence || !in.hasReadings(part) || !in.canUse(part.Intent) {
		return nil
	}
	near := []contract.IntentScore{{Intent: part.Intent, Confidence: part.Confidence}}
	together := part.Confidence
	for _, next := range part.runnersUp {
		if next.Confidence < minReadingShare*part.Confidence || len(near) > matcher.MaxTied {
			break // runners-up are sorted
		}
		if next.Intent != part.Intent && in.sharesAgent(append(near, next)) {
			near = append(near, next)
			together += next.Confidence
		}
	}
	if together < minConfidence {
		return nil
	}
	return near
}

// hasHit reports whether the score of an agent reaches the threshold.
func (p *planner) hasHit(q *matcher.Query) bool {
	var res matcher.Result
	p.in.Index.Match(q, p.in.Live, &res)
	return slices.ContainsFunc(res.Best(), func(c matcher.Candidate) bool {
		return c.Failed&(matcher.GateThreshold|matcher.GateScopes|matcher.GateTenant|matcher.GateDataClasses|matcher.GateAcceptance) == 0
	})
}

// dropDisabled returns the options without those that only disabled agents serve. If fewer than two
// remained it returns all: without a question, the request would be sent to an agent that the text
// does not clearly mean.
func (p *planner) dropDisabled(options []contract.ClarificationOption) []contract.ClarificationOption {
	var kept []contract.ClarificationOption
	for _, o := range options {
		q := p.query
		q.Intent, q.Domains, q.Confidence = o.Intent, o.Domains, 1
		if !p.servesDisabled(&q) {
			o.ID = strconv.Itoa(len(kept) + 1)
			kept = append(kept, o)
		}
	}
	if len(kept) < 2 {
		return options
	}
	return kept
}

// servesDisabled reports whether all agents whose scores reach the threshold are disabled, and there
// is one.
func (p *planner) servesDisabled(q *matcher.Query) (disabled bool) {
	var res matcher.Result
	p.in.Index.Match(q, p.in.Live, &res)
	for _, c := range res.Best() {
		switch {
		case c.Failed.Has(matcher.GateThreshold):
		case !c.Disabled():
			return false
		default:
			disabled = true
		}
	}
	return disabled
}

// canUse reports whether an agent that the caller may use, and did not exclude,
// declares the intent.
func (in *Input) canUse(intent string) bool {
	return slices.ContainsFunc(in.Catalogue.Agents, func(a *contract.RegistryEntry) bool {
		return slices.Contains(a.Match.Intent, intent) && in.mayConsider(a.ID)
	})
}

// sharesAgent reports whether one agent declares all of the intents.
func (in *Input) sharesAgent(intents []contract.IntentScore) bool {
	return slices.ContainsFunc(in.Catalogue.Agents, func(agent *contract.RegistryEntry) bool {
		return in.mayConsider(agent.ID) && !slices.ContainsFunc(intents, func(reading contract.IntentScore) bool {
			return !slices.Contains(agent.Match.Intent, reading.Intent)
		})
	})
}

func (in *Input) mayConsider(agentID string) bool {
	return (in.OnlyAgent == "" || in.OnlyAgent == agentID) && in.Caller.MayUse(agentID)
}

// markTied shows in the decision that the intent of a part is only the likeliest.
func (p *planner) markTied(part *Part) {
	c := &p.plan.Decision.Classification
	if part.Subtask != WholeRequest {
		s := &c.Subtasks[part.Subtask]
		s.Tied, s.TiedConfidence = true, part.Confidence
	}
	if part.Intent == c.Intent {
		c.Tied, c.TiedConfidence = true, part.Confidence
	}
}

// addOption appends a reading of the part, with the domain that the registry implies
// for it, unless its intent is listed already or the caller's choice of it could not be
// served. The domain that only the intent of the part implies is not one of another intent.
func (p *planner) addOption(options []contract.ClarificationOption, intent string, part *Part) []contract.ClarificationOption {
	known := slices.ContainsFunc(options, func(o contract.ClarificationOption) bool { return o.Intent == intent })
	if known || len(options) == maxOptions {
		return options
	}
	chosen := contract.Classification{Intent: intent, Domains: part.Domains, DomainOrigins: part.origins, Confidence: 1}
	if intent != part.Intent {
		chosen = classifier.WithoutImplied(chosen)
	}
	classifier.ImplyDomains(p.in.Catalogue, &chosen)
	q := p.query
	q.Intent, q.Domains, q.Confidence = chosen.Intent, chosen.Domains, chosen.Confidence
	if !p.hasHit(&q) {
		return options
	}
	return append(options, contract.ClarificationOption{
		ID: strconv.Itoa(len(options) + 1), Label: contract.OptionLabel(intent, chosen.Domains), Intent: intent, Domains: append([]string{}, chosen.Domains...),
	})
}
