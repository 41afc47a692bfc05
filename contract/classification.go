package contract

import "strings"

// Unknown is the intent or domain of a request nothing in the registry fits.
// As a domain it matches nothing; only a declared "*" counts it.
const Unknown = "unknown"

// AnyDomain is the domain that, declared by an agent, counts as any one domain (once).
const AnyDomain = "*"

// Limits of a classification (003 §2).
const (
	MaxDomains      = 3
	MaxSubtasks     = 3
	MaxSubtaskTitle = 200 // characters
)

// Source says which part of the classifier answered.
type Source string

// The sources of a classification.
const (
	SourceLLM     Source = "llm"
	SourceLexical Source = "lexical"
	SourceCache   Source = "cache"
	SourcePinned  Source = "pinned"
)

// Classification is what a request is taken to be: a proposal, which the
// matcher's arithmetic then decides upon (003 §2).
type Classification struct {
	Intent     string    `json:"intent"`
	Domains    []string  `json:"domains"`
	Subtasks   []Subtask `json:"subtasks"`
	Confidence float64   `json:"confidence"` // 0..1

	Source    Source  `json:"source"`
	Reason    string  `json:"reason,omitempty"` // why a fallback of the classifier answered
	LatencyMS float64 `json:"latency_ms"`
	// ModelUse is how a model was asked, also when its reply was of no use; nil
	// when none was.
	*ModelUse
	// Cascade is what the lexical classifier made of a request in the mode
	// cascade; nil in other modes, and where the cache answered.
	Cascade *Cascade `json:"cascade,omitempty"`
	// Alternatives are the next best intents of the lexical classifier, best
	// first, the chosen intent excluded. An LLM gives none.
	Alternatives []IntentScore `json:"alternatives,omitempty"`
}

// Cascade tells whether the lexical classifier spared the model, and whether the
// two agreed where it did not.
type Cascade struct {
	Intent       string   `json:"intent"` // the lexical classifier's
	Confidence   float64  `json:"confidence"`
	Accept       *float64 `json:"accept"`           // the confidence that spares the model; null = none does
	ModelSkipped bool     `json:"spared"`           // the model was not asked
	Agrees       *bool    `json:"agrees,omitempty"` // on the intent, where the model was asked and answered
}

// Subtask is one part of a request. Intent and Domains are empty where the
// parent's hold.
type Subtask struct {
	Title   string   `json:"title"`
	Reason  string   `json:"reason,omitempty"`
	Intent  string   `json:"intent,omitempty"`
	Domains []string `json:"domains,omitempty"`
}

// IntentScore is one intent with the classifier's confidence in it (0..1).
type IntentScore struct {
	Intent     string  `json:"intent"`
	Confidence float64 `json:"confidence"`
}

// SubtaskTitle returns the first line of a text, shortened to the title of a
// subtask.
func SubtaskTitle(text string) string {
	title, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	title = strings.TrimSpace(title)
	n := 0
	for i := range title {
		if n == MaxSubtaskTitle-1 {
			return title[:i] + "…"
		}
		n++
	}
	return title
}
