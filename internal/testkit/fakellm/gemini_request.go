package fakellm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// geminiRequest is the body of generateContent. Unknown members are an error,
// as in the real API.
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

func (geminiProtocol) parseBody(r *Request) *errorSpec {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return invalidRequest("Invalid JSON payload received. Unknown name \"\": Root element must be a message.")
	}
	var in geminiRequest
	if err := strictjson.Unmarshal(r.Body, &in); err != nil {
		return invalidRequest("Invalid JSON payload received. " + err.Error())
	}
	if in.Model != "" && in.Model != "models/"+r.Model {
		return invalidRequest("The model of the body is not that of the path.")
	}
	if f := in.validate(); f != nil {
		return f
	}
	if in.SystemInstruction != nil {
		r.System = in.SystemInstruction.joinParts()
	}
	var user []string
	for _, c := range in.Contents {
		if c.Role != "model" {
			user = append(user, c.joinParts())
		}
	}
	r.User = strings.Join(user, "\n")
	return in.GenerationConfig.apply(r)
}

func (in *geminiRequest) validate() *errorSpec {
	if len(in.Contents) == 0 {
		return invalidRequest("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i, c := range in.Contents {
		if c.Role != "" && c.Role != "user" && c.Role != "model" {
			return invalidRequest("Please use a valid role: user, model.")
		}
		if len(c.Parts) == 0 {
			return invalidRequest(fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i))
		}
	}
	return nil
}

func (c *geminiConfig) apply(r *Request) *errorSpec {
	if c == nil {
		return nil
	}
	r.MIMEType, r.MaxOutputTokens, r.Temperature, r.Thinking = c.ResponseMIMEType, c.MaxOutputTokens, c.Temperature, string(c.Thinking)
	switch {
	case c.MaxOutputTokens < 0:
		return invalidRequest("* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.\n")
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 2):
		return invalidRequest("* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n")
	case c.ResponseSchema != nil && c.JSONSchema != nil:
		return invalidRequest("Only one of response_schema and response_json_schema may be set.")
	case c.ResponseSchema != nil && c.ResponseMIMEType == "", c.JSONSchema != nil && c.ResponseMIMEType == "":
		return invalidRequest("* GenerateContentRequest.generation_config.response_schema: only allowed with a response_mime_type such as application/json.\n")
	}
	var err error
	switch {
	case c.ResponseSchema != nil:
		r.Schema, err = schemaParser{gemini: true, optional: &r.Optional}.parse("response_schema", c.ResponseSchema)
	case c.JSONSchema != nil:
		r.Schema, err = schemaParser{optional: &r.Optional}.parse("response_json_schema", c.JSONSchema)
	}
	if err != nil {
		return invalidRequest("* GenerateContentRequest.generation_config." + err.Error() + "\n")
	}
	return nil
}

func (c *geminiContent) joinParts() string {
	parts := make([]string, 0, len(c.Parts))
	for _, p := range c.Parts {
		parts = append(parts, p.Text)
	}
	return strings.Join(parts, "")
}

func invalidRequest(message string) *errorSpec { return &errorSpec{status: 400, message: message} }
