package fakellm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// openaiRequest is the body of a chat completion, with members of local
// servers. Unknown members are an error.
type openaiRequest struct {
	Model               string          `json:"model"`
	Messages            []openaiMsg     `json:"messages"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	N                   *int            `json:"n"`
	Seed                *int            `json:"seed"`
	Stream              bool            `json:"stream"`
	Store               *bool           `json:"store"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ResponseFormat      *openaiFormat   `json:"response_format"`
	ReasoningEffort     json.RawMessage `json:"reasoning_effort"`
	ChatTemplate        json.RawMessage `json:"chat_template_kwargs"` // vLLM, llama.cpp
}

type openaiMsg struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a string, or parts of type text
}

type openaiFormat struct {
	Type       string            `json:"type"`
	JSONSchema *openaiJSONSchema `json:"json_schema"`
}

type openaiJSONSchema struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Schema      any    `json:"schema"`
	Strict      bool   `json:"strict"`
}

func (openaiProtocol) parseBody(r *Request) *errorSpec {
	var in openaiRequest
	if err := strictjson.Unmarshal(r.Body, &in); err != nil {
		return invalidRequest("We could not parse the JSON body of your request: " + err.Error())
	}
	if f := in.validate(); f != nil {
		return f
	}
	r.Model, r.Temperature = in.Model, in.Temperature
	r.MaxOutputTokens = max(in.MaxTokens, in.MaxCompletionTokens)
	r.Thinking = string(in.ReasoningEffort) + string(in.ChatTemplate)
	var system, user []string
	for i, m := range in.Messages {
		text, ok := m.joinParts()
		switch {
		case !ok:
			return invalidRequest(fmt.Sprintf("Invalid type for 'messages[%d].content': expected one of a string or array of objects.", i))
		case m.Role == "system", m.Role == "developer":
			system = append(system, text)
		case m.Role == "user":
			user = append(user, text)
		case m.Role == "assistant":
		default:
			return invalidRequest(fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user' and 'developer'.", m.Role))
		}
	}
	r.System, r.User = strings.Join(system, "\n"), strings.Join(user, "\n")
	return in.ResponseFormat.apply(r)
}

func (in *openaiRequest) validate() *errorSpec {
	switch {
	case in.Model == "":
		return invalidRequest("you must provide a model parameter")
	case len(in.Messages) == 0:
		return invalidRequest("Missing required parameter: 'messages'.")
	case in.MaxTokens != 0 && in.MaxCompletionTokens != 0:
		return invalidRequest("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case in.MaxTokens < 0, in.MaxCompletionTokens < 0:
		return invalidRequest("Invalid 'max_tokens': integer below minimum value. Expected a value >= 1.")
	case in.Temperature != nil && (*in.Temperature < 0 || *in.Temperature > 2):
		return invalidRequest("Invalid 'temperature': decimal above maximum value. Expected a value <= 2.")
	case in.Stream:
		return invalidRequest("This server does not stream.")
	}
	return nil
}

func (m *openaiMsg) joinParts() (string, bool) {
	switch c := m.Content.(type) {
	case string:
		return c, true
	case []any:
		var all strings.Builder
		for _, p := range c {
			part, _ := p.(jsonObject)
			text, ok := part["text"].(string)
			if part["type"] != "text" || !ok {
				return "", false
			}
			all.WriteString(text)
		}
		return all.String(), true
	default:
		return "", false
	}
}

func (f *openaiFormat) apply(r *Request) *errorSpec {
	if f == nil || f.Type == "text" {
		return nil
	}
	r.MIMEType = "application/json"
	switch {
	case f.Type == "json_object" && f.JSONSchema == nil:
		return nil
	case f.Type != "json_schema":
		return invalidRequest("Invalid value: response_format.type.")
	case f.JSONSchema == nil || f.JSONSchema.Schema == nil:
		return invalidRequest("Missing required parameter: 'response_format.json_schema'.")
	case f.JSONSchema.Name == "":
		return invalidRequest("Missing required parameter: 'response_format.json_schema.name'.")
	}
	schema, err := schemaParser{strict: f.JSONSchema.Strict, optional: &r.Optional}.parse("schema", f.JSONSchema.Schema)
	if err != nil {
		return invalidRequest(fmt.Sprintf("Invalid schema for response_format '%s': %v", f.JSONSchema.Name, err))
	}
	r.Schema = schema
	return nil
}
