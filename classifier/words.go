package classifier

import (
	"github.com/caprouter/caprouter/contract"
)

// Reasons of a Classification that no model was asked for. Where one was, and
// was of no use, the reason is one of package llm.
const (
	ReasonEmptyRegistry = "empty_registry" // there is nothing to classify for
	ReasonTooManyParts  = "too_many_parts" // the prompt asks for more than contract.MaxSubtasks things
)

func (in *Input) empty() bool { return in.Catalogue == nil || len(in.Catalogue.Agents) == 0 }

// propose classifies by the registry's words, without a clock: the same input
// gives the same proposal.
func propose(in *Input) contract.Classification {
	if in.empty() || in.Lexical == nil {
		return contract.Classification{
			Intent: contract.Unknown, Domains: []string{}, Subtasks: []contract.Subtask{},
			Source: contract.SourceLexical, Reason: ReasonEmptyRegistry,
		}
	}
	parts := split(in.Lexical, in.Prompt)
	if len(parts) > 0 {
		return fromParts(parts)
	}
	whole := in.Lexical.Classify(in.Prompt)
	return contract.Classification{
		Intent:       whole.Intent,
		Domains:      domainsOr(whole.Domains, whole.Intent),
		Subtasks:     []contract.Subtask{},
		Confidence:   whole.Confidence,
		Source:       contract.SourceLexical,
		Alternatives: whole.Alternatives,
	}
}

// domainsOr names contract.Unknown where a known intent has no domain: a
// declared "*" counts it, nothing else does.
func domainsOr(domains []string, intent string) []string {
	if len(domains) == 0 && intent != contract.Unknown {
		return []string{contract.Unknown}
	}
	return domains
}
