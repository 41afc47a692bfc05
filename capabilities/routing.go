package capabilities

import "math"

// PreferSpecific is the only conflict policy: of agents with the same score, the
// one with more matching domains is first, then the one that declares less.
const PreferSpecific = "prefer_specific"

// Routing contains the rules of the decision.
type Routing struct {
	ConfidenceThreshold float64 `yaml:"confidence_threshold" synonym:"score_threshold" validate:"range=0 1.1"` // match score needed, 0..1.1
	// MinConfidence is the least confidence of the classification. If it is nil,
	// the source of the classification determines it: see classifier.MinConfidence.
	MinConfidence       *float64 `yaml:"min_confidence" validate:"omitempty,range=0 1"`
	AmbiguityThreshold  float64  `yaml:"ambiguity_threshold" validate:"range=0 1"`
	TopK                int      `yaml:"topk" validate:"range=1 8"` // most distinct agents per request
	ConflictPolicy      string   `yaml:"conflict_policy" validate:"oneof=prefer_specific"`
	AutoSplitIfConflict bool     `yaml:"auto_split_if_conflict"`
	// ImpliedDomains permits that a classification gets a domain that its text
	// does not propose: see Catalogue.ImpliedDomain.
	ImpliedDomains bool `yaml:"implied_domains"`
}

// DefaultRouting returns the values of absent keys.
func DefaultRouting() Routing {
	return Routing{
		ConfidenceThreshold: 0.65,
		AmbiguityThreshold:  0.1,
		TopK:                2,
		ConflictPolicy:      PreferSpecific,
		AutoSplitIfConflict: true,
		ImpliedDomains:      true,
	}
}

// ThresholdHundredths returns the smallest integer score that reaches
// ConfidenceThreshold: 65 for 0.65, 66 for 0.655.
func (r Routing) ThresholdHundredths() int {
	// The tolerance keeps 0.55, which is 55.00000000000001 hundredths, at 55.
	return int(math.Ceil(r.ConfidenceThreshold*100 - 1e-9))
}

// The fallback policies.
const (
	FallbackAuto        = "auto" // FallbackAnswer if a model is configured, else FallbackUnsupported
	FallbackAnswer      = "A"    // a model answers directly, within bounds
	FallbackUnsupported = "B"    // refuse, and list what is supported
	FallbackPropose     = "C"    // open a ticket that proposes an agent
)

// policyWords are the words that a file may contain for a policy.
var policyWords = map[string]string{"answer": FallbackAnswer, "refuse": FallbackUnsupported, "ticket": FallbackPropose}

// Fallback configures the answer to requests without an eligible agent.
type Fallback struct {
	Policy    string `yaml:"policy" validate:"policy"`             // one of the constants above
	MaxTokens int    `yaml:"max_tokens" validate:"range=1 100000"` // of an answer by FallbackAnswer
	Language  string `yaml:"language" validate:"language"`         // "auto" or a BCP 47 tag
}

// DefaultFallback returns the values of absent keys.
func DefaultFallback() Fallback {
	return Fallback{Policy: FallbackAuto, MaxTokens: 600, Language: "auto"}
}
