package llm

import (
	"context"

	"github.com/caprouter/caprouter/contract"
)

// Provider asks one model of one maker. Generate is one HTTP exchange: it does
// not retry, and ends with the context, which has a deadline. Its errors are
// *Error, or those of the context.
type Provider interface {
	Generate(ctx context.Context, req *Request) (*Reply, error)
}

// Request is what a model is asked. System holds our words only; whatever comes
// from outside is data in User.
type Request struct {
	Purpose         contract.CallPurpose
	System          string
	User            string
	Schema          *Schema // the reply is JSON of this shape; nil = text
	MaxOutputTokens int     // thinking included, where a model counts it there
}

// Reply is what a model said. Text may be empty when it was cut off.
type Reply struct {
	Text      string
	Truncated bool // MAX_TOKENS, or finish_reason length
	Tokens    contract.Tokens
}

// Schema is the shape of a JSON reply: the part of JSON Schema that every
// provider understands. All properties of an object are required.
type Schema struct {
	Type        string // object, array, string or number
	Description string
	Enum        []string
	Items       *Schema
	Properties  []Property // in the order they are to be written
}

// Property is one member of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// Prober finds out, for `caprouter doctor`, whether a provider's server is
// reached, takes the key and has the model. It spends no tokens. Its errors are
// *Error, or those of the context.
type Prober interface {
	Probe(ctx context.Context) error
}
