package classifier

import (
	"math"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/followup"
)

// followUpFactor is the confidence in a follow-up, relative to that in the request that it
// continues. A follow-up of a sure request is dispatched, and one of a request that was
// barely sure enough is not.
const followUpFactor = 0.9

// isFollowUp reports whether the prompt has no meaning by itself and continues the previous
// request.
func isFollowUp(in *Input) bool {
	if in.Previous == nil {
		return false
	}
	own := classifyPrompt(in)
	return continuesPrevious(in, &own)
}

// continuesPrevious reports whether the prompt, of which own is the classification by itself,
// continues the previous request. This must be a single request, with an intent of the registry.
// If the words of the prompt are evidence for another intent, it does not.
func continuesPrevious(in *Input, own *contract.Classification) bool {
	p := in.Previous
	switch {
	case p == nil || !isUnknown(own):
		return false
	case p.Intent == contract.Unknown || len(p.Subtasks) > 0 || !isDeclared(in.Catalogue.Intents, p.Intent):
		return false
	case own.Confidence >= minReading && len(own.Alternatives) > 0 && own.Alternatives[0].Intent != p.Intent:
		return false
	}
	return followup.Continues(in.Prompt, lastUserTurn(in.History), otherDomains(in, own))
}

// otherDomains returns the names of the domains that the prompt names, as the registry and the
// prompt spell them, if they may stand for domains that the previous request named.
func otherDomains(in *Input, own *contract.Classification) (names []string) {
	isWritten := func(o contract.DomainOrigin) bool {
		return o.Origin == contract.DomainNamed || o.Origin == contract.DomainAlias
	}
	if !slices.ContainsFunc(in.Previous.DomainOrigins, isWritten) || !in.Catalogue.ServesDomain(in.Previous.Intent, own.Domains) {
		return nil
	}
	for _, o := range own.DomainOrigins {
		if isWritten(o) {
			names = append(names, o.Domain, o.Text)
		}
	}
	return names
}

func lastUserTurn(history []contract.Turn) string {
	for _, turn := range slices.Backward(history) {
		if turn.Role == "user" {
			return turn.Content
		}
	}
	return ""
}

// newFollowUp returns the classification of a prompt that continues the previous request. A
// follow-up of a follow-up has the same confidence, because both mean the request before them.
// Tied intents stay tied. own is the classification of the prompt by itself.
func newFollowUp(in *Input, own *contract.Classification) contract.Classification {
	previous := in.Previous
	factor := followUpFactor
	if previous.Reason == ReasonFollowUp {
		factor = 1
	}
	lower := func(confidence float64) float64 { return math.Round(confidence*factor*1e4) / 1e4 }
	proposed := WithoutImplied(*previous)
	clf := contract.Classification{
		Intent: proposed.Intent, Domains: proposed.Domains, DomainOrigins: proposed.DomainOrigins, Subtasks: []contract.Subtask{},
		Confidence: lower(proposed.Confidence), Source: contract.SourceLexical, Reason: ReasonFollowUp,
	}
	if len(otherDomains(in, own)) > 0 {
		clf.Domains, clf.DomainOrigins = own.Domains, own.DomainOrigins
	}
	if proposed.Tied {
		for _, a := range proposed.Alternatives {
			clf.Alternatives = append(clf.Alternatives, contract.IntentScore{Intent: a.Intent, Confidence: lower(a.Confidence)})
		}
	}
	return clf
}

// followUpEvidence returns the evidence for a prompt that continues the previous request.
func followUpEvidence(in *Input) contract.Evidence {
	return contract.Evidence{
		Kind: contract.EvidenceFollowUp, Text: contract.SubtaskTitle(in.Prompt), Intent: in.Previous.Intent,
		Strength: in.Previous.Confidence, Missing: []string{},
	}
}
