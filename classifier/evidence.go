package classifier

import (
	"slices"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// Limits of the evidence for one classification. The request is at the beginning of
// a long prompt; what follows is usually material.
const (
	maxEvidenceBytes    = 4 << 10 // of the prompt
	maxRunnerUpEvidence = 2
	maxLearnedEvidence  = 3
)

// ListEvidence returns the texts of the registry that share words with the prompt
// and speak for the intents of its classification, then those for the next best
// intent. If there is no such intent, those for any intent are returned. If no text speaks
// for the intent, the words of the prompt are listed that made the model choose it. For a
// follow-up of the previous request, the prompt is the only evidence. An earlier
// classification that is reused has no evidence, because it does not come from this
// prompt. It takes about as long as a lexical classification.
func ListEvidence(in *Input, clf *contract.Classification) []contract.Evidence {
	if clf.Source == contract.SourcePinned || in.Lexical == nil {
		return nil
	}
	if clf.Source == contract.SourceLexical && isFollowUp(in) {
		return []contract.Evidence{followUpEvidence(in)}
	}
	text := evidenceText(in.Prompt)
	if len(text) > maxEvidenceBytes {
		end := maxEvidenceBytes
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	var intents, next []string
	if clf.Intent != contract.Unknown {
		intents = append(intents, clf.Intent)
	}
	for i := range clf.Subtasks {
		if s := &clf.Subtasks[i]; s.Intent != "" && s.Intent != contract.Unknown {
			intents = append(intents, s.Intent)
		}
	}
	for _, a := range clf.Alternatives {
		switch {
		case len(intents) == 0:
			intents = append(intents, a.Intent)
		case len(next) == 0 && !slices.Contains(intents, a.Intent):
			next = append(next, a.Intent)
		}
	}
	evidence := findEvidence(in.Lexical, text, intents, contract.MaxEvidence)
	if clf.Source == contract.SourceLexical && clf.Confidence >= minReading && len(intents) > 0 && !speaksFor(evidence, intents[0]) {
		against := ""
		if len(next) > 0 {
			against = next[0]
		}
		learned := newEvidence(in.Lexical.ListLearned(text, intents[0], against, maxLearnedEvidence))
		evidence = append(learned, evidence[:min(len(evidence), contract.MaxEvidence-len(learned))]...)
	}
	if len(next) == 0 {
		return evidence
	}
	against := findEvidence(in.Lexical, text, next, maxRunnerUpEvidence)
	return append(evidence[:min(len(evidence), contract.MaxEvidence-len(against))], against...)
}

// findEvidence returns the evidence for the intents, or for any intent if there are none.
func findEvidence(m *lexical.Model, text string, intents []string, limit int) (list []contract.Evidence) {
	keep := func(intent string) bool { return len(intents) == 0 || slices.Contains(intents, intent) }
	return newEvidence(m.ListEvidence(text, limit, keep))
}

// speaksFor reports whether some of the evidence speaks for the intent.
func speaksFor(list []contract.Evidence, intent string) bool {
	return slices.ContainsFunc(list, func(e contract.Evidence) bool { return e.Intent == intent && e.Kind != contract.EvidenceNegation })
}

func newEvidence(items []lexical.EvidenceItem) (list []contract.Evidence) {
	for _, item := range items {
		list = append(list, contract.Evidence{
			Kind: contract.EvidenceKind(item.Kind), Text: item.Text, Intent: item.Intent,
			Strength: item.Strength, Missing: append([]string{}, item.Missing...), RequestText: item.RequestText,
		})
	}
	return list
}
