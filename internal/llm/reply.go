package llm

import (
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// FinishReason is how a model's reply ended.
type FinishReason int

// The ends of a reply. Whatever a maker invents besides is EndWhole: a text is
// judged by what it says.
const (
	FinishComplete  FinishReason = iota
	FinishTruncated              // by the limit of output tokens
	FinishBlocked                // by the maker's filters
)

// GeminiFinishReason reads a finish reason of the Gemini API.
func GeminiFinishReason(finishReason string) FinishReason {
	switch finishReason {
	case "MAX_TOKENS":
		return FinishTruncated
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return FinishBlocked
	}
	return FinishComplete
}

// NewReply judges what a provider read: the text without thoughts, how it ended,
// and that in the maker's own words.
func NewReply(text string, end FinishReason, said string, tokens contract.Tokens) (*Reply, error) {
	blank := strings.TrimSpace(text) == ""
	switch {
	case end == FinishBlocked:
		return nil, BlockedError("reply", said)
	case end == FinishTruncated:
		return &Reply{Text: text, Truncated: true, Tokens: tokens}, nil
	case blank && said != "":
		return nil, &Error{Reason: ReasonEmpty, Status: 200, Detail: "a reply without text: " + clean(said)}
	case blank:
		return nil, &Error{Reason: ReasonEmpty, Status: 200, Detail: "a reply without text"}
	}
	return &Reply{Text: text, Tokens: tokens}, nil
}

// BlockedError is the error of a prompt or a reply that the maker's filters held
// back, for the reason they gave.
func BlockedError(what, said string) *Error {
	detail := "the maker's filters held back the " + what
	if said != "" {
		detail += ": " + clean(said)
	}
	return &Error{Reason: ReasonBlocked, Status: 200, Detail: detail}
}
