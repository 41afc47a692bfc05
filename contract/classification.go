package contract

import "strings"

// Unknown is the intent or domain if nothing in the registry fits. As a domain
// it matches only a declared "*".
const Unknown = "unknown"

// AnyDomain is a declared domain that matches any one domain, once.
const AnyDomain = "*"

// Limits of a classification.
const (
	MaxDomains      = 3
	MaxSubtasks     = 3
	MaxSubtaskTitle = 200 // characters
	MaxEvidence     = 5
)

// Source is the part of the classifier that produced a classification.
type Source string

// The sources of a classification.
const (
	SourceLLM     Source = "llm"
	SourceLexical Source = "lexical"
	SourceCache   Source = "cache"
	SourcePinned  Source = "pinned"
)

// Classification is the proposed meaning of a request. The matcher decides on
// it by arithmetic.
type Classification struct {
	Intent  string   `json:"intent"`
	Domains []string `json:"domains"`
	// DomainOrigins explains the domains, in their order. Unknown has no origin,
	// and neither have domains that the caller chose in a clarification.
	DomainOrigins []DomainOrigin `json:"domain_origins,omitempty"`
	Subtasks      []Subtask      `json:"subtasks"`
	Confidence    float64        `json:"confidence"` // 0..1

	Source    Source  `json:"source"`
	Reason    string  `json:"reason,omitempty"` // cause of a classifier fallback
	LatencyMS float64 `json:"latency_ms"`
	// ModelUse describes the model calls, also if their replies were not
	// usable; nil without calls.
	*ModelUse
	// Cascade is the lexical result in cascade mode; nil in other modes and for
	// cached results.
	Cascade *Cascade `json:"cascade,omitempty"`
	// Alternatives are the next best intents of the lexical classifier, best
	// first, without the chosen one. A model provides none.
	Alternatives []IntentScore `json:"alternatives,omitempty"`
	// Tied means that Intent is only the likeliest of several intents with about
	// the same confidence, all of which the chosen agent declares.
	Tied bool `json:"tied,omitzero"`
	// TiedConfidence is the sum of the confidences of the tied intents, which is what
	// the least confidence is compared with; 0 unless Tied.
	TiedConfidence float64 `json:"tied_confidence,omitzero"`
	// RequiredConfidence is the confidence from which the lexical classifier accepts an
	// intent of this registry, if Intent is Unknown for that reason alone: the confidence
	// reaches the default minimum of 0.5. Otherwise it is 0.
	RequiredConfidence float64 `json:"required_confidence,omitzero"`
	// Evidence are at most MaxEvidence texts that speak for Intent or the next best
	// intent, the strongest first.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Evidence is a text of the registry that shares words with a request, or a word of the
// request.
type Evidence struct {
	Kind     EvidenceKind `json:"kind"`
	Text     string       `json:"text"`     // as declared
	Intent   string       `json:"intent"`   // that the text speaks for
	Strength float64      `json:"strength"` // 0..1: the share of the text, by the weight of its words, that the request contains
	Missing  []string     `json:"missing"`  // words of the text that the request does not contain, without stop words
	// RequestText is what the request contains instead of the text: a misspelling, a synonym or
	// a similar word.
	RequestText string `json:"request_text,omitzero"`
}

// EvidenceKind is the part of the registry that an Evidence comes from.
type EvidenceKind string

// Kinds of evidence.
const (
	EvidenceExample     EvidenceKind = "example"
	EvidenceKeyword     EvidenceKind = "keyword"
	EvidenceName        EvidenceKind = "name" // of the intent
	EvidenceDescription EvidenceKind = "description"
	EvidenceAlias       EvidenceKind = "alias"   // of a domain
	EvidenceTypo        EvidenceKind = "typo"    // a word of the registry that the request misspells
	EvidenceSynonym     EvidenceKind = "synonym" // a word of the registry that means the same as a word of the request
	EvidenceSimilar     EvidenceKind = "similar" // a word of the registry that occurs in the same contexts as a word of the request
	// EvidenceNegation is a word of the intent's name that the request asks not to do.
	EvidenceNegation EvidenceKind = "negation"
	// EvidenceLearned is a word of the request, or two words in a row, with weight for the intent
	// in the lexical model. It is listed if no text of the registry speaks for the intent.
	EvidenceLearned EvidenceKind = "learned"
	// EvidenceFollowUp is the request itself, which continues the previous request of its
	// session. Its strength is the confidence in that request.
	EvidenceFollowUp EvidenceKind = "follow_up"
)

// Cascade describes whether the lexical classifier made the model call
// unnecessary, and whether both agree otherwise.
type Cascade struct {
	Intent       string   `json:"intent"` // of the lexical classifier
	Confidence   float64  `json:"confidence"`
	Accept       *float64 `json:"accept"`           // confidence from which the model is skipped; null = never
	ModelSkipped bool     `json:"spared"`           // the model was not asked
	Agrees       *bool    `json:"agrees,omitempty"` // on the intent; absent if the model did not reply
}

// Subtask is one part of a request. Intent, Domains and Confidence are empty if
// those of the classification apply.
type Subtask struct {
	Title   string   `json:"title"`
	Reason  string   `json:"reason,omitempty"`
	Intent  string   `json:"intent,omitempty"`
	Domains []string `json:"domains,omitempty"`
	// Confidence, Alternatives, Tied and TiedConfidence are those of this part alone. A
	// model provides none.
	Confidence     float64       `json:"confidence,omitzero"`
	Alternatives   []IntentScore `json:"alternatives,omitempty"`
	Tied           bool          `json:"tied,omitzero"`
	TiedConfidence float64       `json:"tied_confidence,omitzero"`
	// DomainOrigins explains Domains, like Classification.DomainOrigins.
	DomainOrigins []DomainOrigin `json:"domain_origins,omitempty"`
}

// DomainOrigin is the reason why a domain belongs to a classification.
type DomainOrigin struct {
	Domain string     `json:"domain"`
	Origin OriginKind `json:"origin"`
	Text   string     `json:"text,omitempty"` // for DomainAlias, the alias as the registry spells it, or the synonym
	// ReplacedBy is the implied domain that replaced this one, because a
	// classification has at most MaxDomains. Domain is then not one of its domains.
	ReplacedBy string `json:"replaced_by,omitempty"`
}

// OriginKind is where a domain comes from.
type OriginKind string

// The origins of a domain.
const (
	DomainNamed   OriginKind = "named"   // the text contains the name
	DomainAlias   OriginKind = "alias"   // the text contains an alias that the registry declares, or a synonym of the name
	DomainLearned OriginKind = "learned" // examples like the text name it
	DomainImplied OriginKind = "implied" // the registry leaves only this one for the intent
	DomainModel   OriginKind = "model"   // a model proposed it
)

// IntentScore is an intent with its confidence (0..1).
type IntentScore struct {
	Intent     string  `json:"intent"`
	Confidence float64 `json:"confidence"`
}

// SubtaskTitle returns the first line of a text, truncated to the length of a
// title.
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
