package openai

import (
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// completionRequest is the request body of a chat completion.
type completionRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Temperature         *float32        `json:"temperature,omitzero"`
	MaxTokens           int             `json:"max_tokens,omitzero"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitzero"`
	ReasoningEffort     string          `json:"reasoning_effort,omitzero"`
	ResponseFormat      *responseFormat `json:"response_format,omitzero"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type responseFormat struct {
	Type       string       `json:"type"`
	JSONSchema *namedSchema `json:"json_schema,omitzero"` // of type json_schema
}

type namedSchema struct {
	Name   string      `json:"name"`
	Strict bool        `json:"strict"`
	Schema *jsonSchema `json:"schema"`
}

// jsonSchema is a JSON Schema for strict mode: all properties required, no
// others allowed.
type jsonSchema struct {
	Type                 string            `json:"type"`
	Description          string            `json:"description,omitzero"`
	Enum                 []string          `json:"enum,omitempty"`
	Items                *jsonSchema       `json:"items,omitzero"`
	Properties           orderedProperties `json:"properties,omitzero"`
	Required             []string          `json:"required,omitempty"`
	AdditionalProperties *bool             `json:"additionalProperties,omitzero"`
}

// orderedProperties are object members in output order. Models write members in
// the order of the schema, and a confidence is better if it comes last.
type orderedProperties []llm.Property

// MarshalJSON encodes an object.
func (list orderedProperties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, p := range list {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := strictjson.Marshal(p.Name)
		if err != nil {
			return nil, err
		}
		value, err := strictjson.Marshal(convertSchema(p.Schema))
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

func convertSchema(s *llm.Schema) *jsonSchema {
	if s == nil {
		return nil
	}
	out := &jsonSchema{Type: s.Type, Description: s.Description, Enum: s.Enum, Items: convertSchema(s.Items), Properties: s.Properties}
	if s.Type == "object" {
		out.AdditionalProperties = new(bool)
		for _, p := range s.Properties {
			out.Required = append(out.Required, p.Name)
		}
	}
	return out
}

func (p *Provider) newRequest(req *llm.Request) *completionRequest {
	q := &completionRequest{Model: p.model, Temperature: p.temperature, ReasoningEffort: p.effort}
	if p.useMaxCompletionTokens {
		q.MaxCompletionTokens = req.MaxOutputTokens
	} else {
		q.MaxTokens = req.MaxOutputTokens
	}
	if req.System != "" {
		q.Messages = append(q.Messages, chatMessage{"system", req.System})
	}
	q.Messages = append(q.Messages, chatMessage{"user", req.User})
	switch {
	case req.Schema == nil:
	case p.format == llm.FormatJSONObject || req.Schema.FreeForm():
		// The prompt describes the members, and contains the word JSON, without which
		// OpenAI rejects this format.
		q.ResponseFormat = &responseFormat{Type: llm.FormatJSONObject}
	default:
		q.ResponseFormat = &responseFormat{Type: llm.FormatJSONSchema, JSONSchema: &namedSchema{Name: "reply", Strict: true, Schema: convertSchema(req.Schema)}}
	}
	return q
}
