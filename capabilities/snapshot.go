package capabilities

import (
	"math"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Snapshot is one registry file as it was read: complete, checked, with the
// defaults filled in. Whoever holds one may share it; nothing in it ever changes.
type Snapshot struct {
	// Version is "sha256:<hex>" of the content: equal for two files that say
	// the same in another order, quoting or layout, or with other comments.
	Version string
	Agents  []*contract.RegistryEntry // sorted by id

	Intents []string // all that are declared: sorted, distinct
	Domains []string // likewise, without contract.AnyDomain

	Routing  Routing
	Fallback Fallback
	Grants   map[string]contract.Grant // what may register itself, by token subject

	// Warnings are sentences for the operator about what the file asks for and
	// does not get.
	Warnings []string
}

// Agent returns the entry of that id, nil when there is none.
func (s *Snapshot) Agent(id string) *contract.RegistryEntry {
	i, found := slices.BinarySearchFunc(s.Agents, id, func(a *contract.RegistryEntry, id string) int {
		return strings.Compare(a.ID, id)
	})
	if !found {
		return nil
	}
	return s.Agents[i]
}

// PreferSpecific is the one conflict policy there is: at the same score the
// agent with more matching domains stands first, then the one that declares
// less (003 §1).
const PreferSpecific = "prefer_specific"

// Routing are the rules of the decision (003 §1, §3, §6).
type Routing struct {
	ConfidenceThreshold float64 `yaml:"confidence_threshold"` // match score needed, 0..1.1
	// MinConfidence gates on the classifier's confidence. nil leaves it to the
	// source of the classification: see classifier.MinConfidence.
	MinConfidence       *float64 `yaml:"min_confidence"`
	AmbiguityThreshold  float64  `yaml:"ambiguity_threshold"`
	TopK                int      `yaml:"topk"` // most distinct agents per request
	ConflictPolicy      string   `yaml:"conflict_policy"`
	AutoSplitIfConflict bool     `yaml:"auto_split_if_conflict"`
}

// DefaultRouting holds for every key a file does not name.
func DefaultRouting() Routing {
	return Routing{
		ConfidenceThreshold: 0.65,
		AmbiguityThreshold:  0.1,
		TopK:                2,
		ConflictPolicy:      PreferSpecific,
		AutoSplitIfConflict: true,
	}
}

// ThresholdHundredths returns the smallest whole score that reaches
// ConfidenceThreshold: 65 for 0.65, 66 for 0.655.
func (r Routing) ThresholdHundredths() int {
	// The slack keeps 0.55, which is 55.00000000000001 hundredths, at 55.
	return int(math.Ceil(r.ConfidenceThreshold*100 - 1e-9))
}

// The fallback policies of 003 §5, and the one that chooses between them.
const (
	FallbackAuto        = "auto" // A where a model is configured, else B
	FallbackAnswer      = "A"    // answer directly, within bounds
	FallbackUnsupported = "B"    // say that nobody serves this, and what is served
	FallbackPropose     = "C"    // propose a new agent
)

// Fallback says what happens when nobody is eligible.
type Fallback struct {
	Policy    string `yaml:"policy"`     // "auto", "A", "B" or "C"
	MaxTokens int    `yaml:"max_tokens"` // of an answer by policy A
	Language  string `yaml:"language"`   // "auto" or a BCP 47 tag
}

// DefaultFallback holds for every key a file does not name.
func DefaultFallback() Fallback {
	return Fallback{Policy: FallbackAuto, MaxTokens: 600, Language: "auto"}
}
