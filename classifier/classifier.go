package classifier

import (
	"context"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// Modes of Config.Mode.
const (
	ModeAuto    = "auto"    // the best that is available: lexical
	ModeLexical = "lexical" // the registry's own words, no model
)

// Reasons of a Classification made here.
const (
	ReasonEmptyRegistry = "empty_registry" // there is nothing to classify for
	ReasonTooManyParts  = "too_many_parts" // the prompt asks for more than contract.MaxSubtasks things
)

// Config selects how prompts are classified; its zero value works.
type Config struct {
	Mode string           // "" = ModeAuto
	Now  func() time.Time // nil = time.Now; LatencyMS is measured with it
}

// Classifier classifies prompts. It holds no registry: a call brings the one it
// is made for, so that a reload never shows a request two of them.
type Classifier struct {
	now func() time.Time
}

// New returns a Classifier, or an error that says which modes there are.
func New(cfg Config) (*Classifier, error) {
	switch cfg.Mode {
	case "", ModeAuto, ModeLexical:
	case "llm", "cascade":
		return nil, fmt.Errorf("mode %q is not available yet: use %q or %q", cfg.Mode, ModeAuto, ModeLexical)
	default:
		return nil, fmt.Errorf("mode %q is not known: use %q or %q", cfg.Mode, ModeAuto, ModeLexical)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Classifier{now: cfg.Now}, nil
}

// Input is one prompt and what it is classified against. Registry and Lexical
// belong together: the model is trained on the registry's Corpus. History and
// Locale are for a model that reads them; the lexical one does not.
type Input struct {
	Prompt   string
	History  []contract.Turn
	Locale   string
	Registry *capabilities.Snapshot
	Lexical  *lexical.Model
}

// Classify proposes what the prompt is. It does not fail: the worst it says is
// contract.Unknown. The context is for a classifier that asks somebody.
func (c *Classifier) Classify(_ context.Context, in Input) contract.Classification {
	start := c.now()
	clf := propose(&in)
	clf.Source = contract.SourceLexical
	clf.LatencyMS = float64(c.now().Sub(start).Round(time.Microsecond)) / float64(time.Millisecond)
	return clf
}

// propose classifies without a clock: the same input gives the same proposal.
func propose(in *Input) contract.Classification {
	if in.Registry == nil || in.Lexical == nil || len(in.Registry.Agents) == 0 {
		return contract.Classification{
			Intent: contract.Unknown, Domains: []string{}, Subtasks: []contract.Subtask{}, Reason: ReasonEmptyRegistry,
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

// MinConfidence is the confidence a classification needs to be acted on: what
// the registry says, else what its source is known to be worth. A calibrated
// share of words means something from a half on; a model is asked for as much
// as the match (003 §1).
func MinConfidence(r capabilities.Routing, source contract.Source) float64 {
	if r.MinConfidence != nil {
		return *r.MinConfidence
	}
	switch source {
	case contract.SourceLLM, contract.SourceCache: // the cache holds what a model said
		return min(r.ConfidenceThreshold, 1)
	case contract.SourceLexical, contract.SourcePinned:
	}
	return lexical.Sure
}
