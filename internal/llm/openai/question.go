package openai

import (
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// question is the body of a chat completion.
type question struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	Temperature         *float32  `json:"temperature,omitzero"`
	MaxTokens           int       `json:"max_tokens,omitzero"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitzero"`
	ReasoningEffort     string    `json:"reasoning_effort,omitzero"`
	ResponseFormat      *format   `json:"response_format,omitzero"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type format struct {
	Type       string     `json:"type"`
	JSONSchema namedShape `json:"json_schema"`
}

type namedShape struct {
	Name   string `json:"name"`
	Strict bool   `json:"strict"`
	Schema *shape `json:"schema"`
}

// shape is a JSON Schema as strict mode wants it: every property required and
// no others allowed.
type shape struct {
	Type                 string     `json:"type"`
	Description          string     `json:"description,omitzero"`
	Enum                 []string   `json:"enum,omitempty"`
	Items                *shape     `json:"items,omitzero"`
	Properties           properties `json:"properties,omitzero"`
	Required             []string   `json:"required,omitempty"`
	AdditionalProperties *bool      `json:"additionalProperties,omitzero"`
}

// properties are members in the order they are to be written: models write them
// in the order of the schema, and a confidence is worth more after what it is
// about.
type properties []llm.Property

// MarshalJSON writes an object.
func (list properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, p := range list {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := strictjson.Marshal(p.Name)
		if err != nil {
			return nil, err
		}
		value, err := strictjson.Marshal(shapeOf(p.Schema))
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

func shapeOf(s *llm.Schema) *shape {
	if s == nil {
		return nil
	}
	out := &shape{Type: s.Type, Description: s.Description, Enum: s.Enum, Items: shapeOf(s.Items), Properties: s.Properties}
	if s.Type == "object" {
		out.AdditionalProperties = new(bool)
		for _, p := range s.Properties {
			out.Required = append(out.Required, p.Name)
		}
	}
	return out
}

func (p *Provider) question(req *llm.Request) *question {
	q := &question{Model: p.model, Temperature: p.temperature, ReasoningEffort: p.effort}
	if p.completion {
		q.MaxCompletionTokens = req.MaxOutputTokens
	} else {
		q.MaxTokens = req.MaxOutputTokens
	}
	if req.System != "" {
		q.Messages = append(q.Messages, message{"system", req.System})
	}
	q.Messages = append(q.Messages, message{"user", req.User})
	if req.Schema != nil {
		q.ResponseFormat = &format{Type: "json_schema", JSONSchema: namedShape{Name: "reply", Strict: true, Schema: shapeOf(req.Schema)}}
	}
	return q
}
