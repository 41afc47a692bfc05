package llm

import (
	"context"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// Provider calls one model of one vendor. Generate is one HTTP exchange without
// retries; ctx has a deadline. Its errors are *Error or those of the context.
type Provider interface {
	Generate(ctx context.Context, req *Request) (*Reply, error)
}

// Request is a model request. System contains only trusted text; untrusted text
// is data in User.
type Request struct {
	Purpose         contract.CallPurpose
	System          string
	User            string
	Schema          *Schema // schema of a JSON reply; nil = text
	MaxOutputTokens int     // including thinking, if the model counts it
}

// Reply is a model's reply. Text may be empty if it was cut off.
type Reply struct {
	Text      string
	Truncated bool // MAX_TOKENS, or finish_reason length
	Tokens    contract.Tokens
}

// Schema is the JSON schema of a reply, limited to what every provider
// supports. All properties of an object are required; as the schema of a reply, an
// object without properties means any object.
type Schema struct {
	Type        string // object, array, string or number
	Description string
	Enum        []string
	Items       *Schema
	Properties  []Property // in output order
}

// FreeForm reports whether any object matches. No provider expresses that in a schema with
// only required properties, so the reply is requested as JSON without one.
func (s *Schema) FreeForm() bool { return s.Type == "object" && len(s.Properties) == 0 }

// Property is one member of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// Prober checks, for `caprouter doctor`, whether the server is reachable,
// accepts the key and has the model. It uses no tokens. Its errors are *Error
// or those of the context.
type Prober interface {
	Probe(ctx context.Context) error
}

// FinishReason is the reason why a reply ended.
type FinishReason int

// Finish reasons. Unknown reasons of a vendor count as FinishComplete, because
// the text is validated anyway.
const (
	FinishComplete  FinishReason = iota
	FinishTruncated              // token limit reached
	FinishBlocked                // safety filter
)

// GeminiFinishReason converts a finish reason of the Gemini API.
func GeminiFinishReason(finishReason string) FinishReason {
	switch finishReason {
	case "MAX_TOKENS":
		return FinishTruncated
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return FinishBlocked
	}
	return FinishComplete
}

// NewReply validates a reply: the text without thoughts, its finish reason, and
// that reason in the vendor's words.
func NewReply(text string, end FinishReason, said string, tokens contract.Tokens) (*Reply, error) {
	blank := strings.TrimSpace(text) == ""
	switch {
	case end == FinishBlocked:
		return nil, BlockedError("reply", said)
	case end == FinishTruncated:
		return &Reply{Text: text, Truncated: true, Tokens: tokens}, nil
	case blank && said != "":
		return nil, &Error{Reason: ReasonEmpty, Status: 200, Detail: "a reply without text: " + sanitizeText(said)}
	case blank:
		return nil, &Error{Reason: ReasonEmpty, Status: 200, Detail: "a reply without text"}
	}
	return &Reply{Text: text, Tokens: tokens}, nil
}

// BlockedError returns the error for a prompt or reply that safety filters
// blocked, with the vendor's reason.
func BlockedError(what, said string) *Error {
	detail := "the maker's filters held back the " + what
	if said != "" {
		detail += ": " + sanitizeText(said)
	}
	return &Error{Reason: ReasonBlocked, Status: 200, Detail: detail}
}
