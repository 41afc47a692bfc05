package llm

import (
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// End is how a model's reply ended.
type End int

// The ends of a reply. Whatever a maker invents besides is EndWhole: a text is
// judged by what it says.
const (
	EndWhole   End = iota
	EndCut         // by the limit of output tokens
	EndBlocked     // by the maker's filters
)

// EndOfGemini reads a finish reason of the Gemini API.
func EndOfGemini(finishReason string) End {
	switch finishReason {
	case "MAX_TOKENS":
		return EndCut
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return EndBlocked
	}
	return EndWhole
}

// NewReply judges what a provider read: the text without thoughts, how it ended,
// and that in the maker's own words.
func NewReply(text string, end End, said string, tokens contract.Tokens) (*Reply, error) {
	blank := strings.TrimSpace(text) == ""
	switch {
	case end == EndBlocked:
		return nil, Blocked("reply", said)
	case end == EndCut:
		return &Reply{Text: text, Truncated: true, Tokens: tokens}, nil
	case blank && said != "":
		return nil, &Error{Reason: ReasonEmpty, Status: 200, Detail: "a reply without text: " + clean(said)}
	case blank:
		return nil, &Error{Reason: ReasonEmpty, Status: 200, Detail: "a reply without text"}
	}
	return &Reply{Text: text, Tokens: tokens}, nil
}

// Blocked is the error of a prompt or a reply that the maker's filters held
// back, for the reason they gave.
func Blocked(what, said string) *Error {
	detail := "the maker's filters held back the " + what
	if said != "" {
		detail += ": " + clean(said)
	}
	return &Error{Reason: ReasonBlocked, Status: 200, Detail: detail}
}
