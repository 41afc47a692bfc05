package fakellm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// geminiRequest is what generateContent takes; a member that is not here is an
// error, as with the server.
type geminiRequest struct {
	Model             string          `json:"model"`
	Contents          []geminiContent `json:"contents"`
	SystemInstruction *geminiContent  `json:"systemInstruction"`
	GenerationConfig  *geminiConfig   `json:"generationConfig"`
	SafetySettings    json.RawMessage `json:"safetySettings"`
	Tools             json.RawMessage `json:"tools"`
	ToolConfig        json.RawMessage `json:"toolConfig"`
	CachedContent     json.RawMessage `json:"cachedContent"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"`
}

type geminiConfig struct {
	CandidateCount   int             `json:"candidateCount"`
	StopSequences    []string        `json:"stopSequences"`
	MaxOutputTokens  int             `json:"maxOutputTokens"`
	Temperature      *float64        `json:"temperature"`
	TopP             *float64        `json:"topP"`
	TopK             *float64        `json:"topK"`
	Seed             *int            `json:"seed"`
	ResponseMIMEType string          `json:"responseMimeType"`
	ResponseSchema   any             `json:"responseSchema"`
	JSONSchema       any             `json:"responseJsonSchema"`
	Thinking         json.RawMessage `json:"thinkingConfig"`
}

func (geminiWire) read(r *Request) *failure {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return invalid("Invalid JSON payload received. Unknown name \"\": Root element must be a message.")
	}
	var in geminiRequest
	if err := strictjson.Unmarshal(r.Body, &in); err != nil {
		return invalid("Invalid JSON payload received. " + err.Error())
	}
	if in.Model != "" && in.Model != "models/"+r.Model {
		return invalid("The model of the body is not that of the path.")
	}
	if f := in.check(); f != nil {
		return f
	}
	if in.SystemInstruction != nil {
		r.System = in.SystemInstruction.text()
	}
	var user []string
	for _, c := range in.Contents {
		if c.Role != "model" {
			user = append(user, c.text())
		}
	}
	r.User = strings.Join(user, "\n")
	return in.GenerationConfig.read(r)
}

func (in *geminiRequest) check() *failure {
	if len(in.Contents) == 0 {
		return invalid("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i, c := range in.Contents {
		if c.Role != "" && c.Role != "user" && c.Role != "model" {
			return invalid("Please use a valid role: user, model.")
		}
		if len(c.Parts) == 0 {
			return invalid(fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i))
		}
	}
	return nil
}

func (c *geminiConfig) read(r *Request) *failure {
	if c == nil {
		return nil
	}
	r.MIMEType, r.MaxOutputTokens, r.Temperature, r.Thinking = c.ResponseMIMEType, c.MaxOutputTokens, c.Temperature, string(c.Thinking)
	switch {
	case c.MaxOutputTokens < 0:
		return invalid("* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.\n")
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 2):
		return invalid("* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n")
	case c.ResponseSchema != nil && c.JSONSchema != nil:
		return invalid("Only one of response_schema and response_json_schema may be set.")
	case c.ResponseSchema != nil && c.ResponseMIMEType == "", c.JSONSchema != nil && c.ResponseMIMEType == "":
		return invalid("* GenerateContentRequest.generation_config.response_schema: only allowed with a response_mime_type such as application/json.\n")
	}
	var err error
	switch {
	case c.ResponseSchema != nil:
		r.Schema, err = schemaReader{gemini: true, optional: &r.Optional}.read("response_schema", c.ResponseSchema)
	case c.JSONSchema != nil:
		r.Schema, err = schemaReader{optional: &r.Optional}.read("response_json_schema", c.JSONSchema)
	}
	if err != nil {
		return invalid("* GenerateContentRequest.generation_config." + err.Error() + "\n")
	}
	return nil
}

func (c *geminiContent) text() string {
	parts := make([]string, 0, len(c.Parts))
	for _, p := range c.Parts {
		parts = append(parts, p.Text)
	}
	return strings.Join(parts, "")
}

func invalid(message string) *failure { return &failure{status: 400, message: message} }
