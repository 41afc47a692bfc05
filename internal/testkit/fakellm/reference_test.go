package fakellm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// reference is a minimal provider that passes the suite: it encodes and decodes the JSON itself,
// with the HTTP client of all providers. defect selects an error in it.
type reference struct {
	s      *Server
	http   *http.Client
	defect string
}

func openReference(defect string) Open {
	return func(t *testing.T, s *Server) llm.Provider {
		t.Helper()
		header := map[Protocol]string{Gemini: "X-Goog-Api-Key", OpenAI: "Authorization"}[s.Protocol]
		client, _, err := llm.NewHTTPClient(
			llm.Config{Provider: string(s.Protocol), Model: s.Model, BaseURL: s.URL, APIKey: llm.NewSecret(s.Key)},
			llm.Protocol{KeyHeader: header},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.CloseIdleConnections)
		return &reference{s: s, http: client, defect: defect}
	}
}

func TestSuite_PassesForReference(t *testing.T) {
	for _, wire := range []Protocol{Gemini, OpenAI} {
		t.Run(string(wire), func(t *testing.T) { Suite(t, wire, openReference("")) })
	}
}

func (p *reference) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	reply, err := p.generate(ctx, req)
	if p.defect == "retries" && llm.ReasonOf(err) == llm.ReasonUnavailable {
		return p.generate(ctx, req)
	}
	return reply, err
}

func (p *reference) generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	path, body := p.ask(req)
	encoded, err := strictjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, p.s.URL+path, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	hr.Header.Set("Content-Type", "application/json")
	if p.defect == "key twice" {
		hr.Header.Set("X-Trace", p.s.Key)
	}
	resp, err := p.http.Do(hr)
	if e, ok := errors.AsType[*llm.Error](err); ok {
		// Omit the server's message, which may contain any text.
		return nil, &llm.Error{Reason: e.Reason, Status: e.Status, RetryAfter: e.RetryAfter}
	}
	if err != nil {
		return nil, errors.Unwrap(err) // the context's error
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if p.s.Protocol == Gemini {
		return p.readGemini(answer)
	}
	return readOpenAI(answer)
}

func (p *reference) ask(req *llm.Request) (path string, body jsonObject) {
	text := func(s string) []any { return []any{jsonObject{"text": s}} }
	if p.s.Protocol == Gemini {
		config := jsonObject{"temperature": 0, "maxOutputTokens": req.MaxOutputTokens}
		if req.Schema != nil {
			config["responseMimeType"] = "application/json"
			if !req.Schema.FreeForm() {
				config["responseSchema"] = schemaJSON(req.Schema, strings.ToUpper)
			}
		}
		if p.defect == "system with the user" {
			return "/v1beta/models/" + p.s.Model + ":generateContent", jsonObject{
				"contents": []any{jsonObject{"parts": text(req.System + req.User)}}, "generationConfig": config,
			}
		}
		return "/v1beta/models/" + p.s.Model + ":generateContent", jsonObject{
			"systemInstruction": jsonObject{"parts": text(req.System)}, "contents": []any{jsonObject{"role": "user", "parts": text(req.User)}},
			"generationConfig": config,
		}
	}
	body = jsonObject{
		"model": p.s.Model, "temperature": 0, "max_tokens": req.MaxOutputTokens,
		"messages": []any{jsonObject{"role": "system", "content": req.System}, jsonObject{"role": "user", "content": req.User}},
	}
	switch {
	case req.Schema == nil:
	case req.Schema.FreeForm():
		body["response_format"] = jsonObject{"type": "json_object"}
	default:
		schema := jsonObject{"name": "reply", "strict": true, "schema": schemaJSON(req.Schema, strings.ToLower)}
		body["response_format"] = jsonObject{"type": "json_schema", "json_schema": schema}
	}
	return "/chat/completions", body
}

// schemaJSON returns a JSON Schema with types in the given case.
func schemaJSON(s *llm.Schema, spell func(string) string) jsonObject {
	out := jsonObject{"type": spell(s.Type)}
	if s.Description != "" {
		out["description"] = s.Description
	}
	if s.Enum != nil {
		out["enum"] = s.Enum
	}
	if s.Items != nil {
		out["items"] = schemaJSON(s.Items, spell)
	}
	if s.Properties != nil {
		props, names := jsonObject{}, []string{}
		for _, p := range s.Properties {
			props[p.Name] = schemaJSON(p.Schema, spell)
			names = append(names, p.Name)
		}
		out["properties"], out["required"] = props, names
		if spell("a") == "a" { // JSON Schema; Gemini's has no such member
			out["additionalProperties"] = false
		}
	}
	return out
}

func (p *reference) readGemini(answer []byte) (*llm.Reply, error) {
	var in struct {
		PromptFeedback *struct {
			BlockReason string `json:"blockReason"`
		} `json:"promptFeedback"`
		Candidates []struct {
			Content      geminiContent `json:"content"`
			FinishReason FinishReason  `json:"finishReason"`
		} `json:"candidates"`
		Usage struct {
			Prompt     int `json:"promptTokenCount"`
			Candidates int `json:"candidatesTokenCount"`
			Thoughts   int `json:"thoughtsTokenCount"`
		} `json:"usageMetadata"`
	}
	switch err := strictjson.UnmarshalAllowUnknown(answer, &in); {
	case err != nil:
		return nil, &llm.Error{Reason: llm.ReasonBadResponse, Err: err}
	case in.PromptFeedback != nil:
		return nil, &llm.Error{Reason: llm.ReasonBlocked}
	case len(in.Candidates) == 0:
		return nil, &llm.Error{Reason: llm.ReasonEmpty}
	}
	c := in.Candidates[0]
	out := &llm.Reply{
		Truncated: c.FinishReason == FinishMaxTokens,
		Tokens:    contract.Tokens{Input: in.Usage.Prompt, Output: in.Usage.Candidates + in.Usage.Thoughts, Thinking: in.Usage.Thoughts},
	}
	for _, part := range c.Content.Parts {
		if !part.Thought || p.defect == "thoughts" {
			out.Text += part.Text
		}
	}
	switch c.FinishReason {
	case FinishSafety, FinishRecitation, FinishBlocklist, FinishProhibited, FinishSPII:
		return nil, &llm.Error{Reason: llm.ReasonBlocked}
	}
	return notEmpty(out)
}

func readOpenAI(answer []byte) (*llm.Reply, error) {
	var in struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
				Refusal string `json:"refusal"`
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		} `json:"usage"`
	}
	if err := strictjson.UnmarshalAllowUnknown(answer, &in); err != nil {
		return nil, &llm.Error{Reason: llm.ReasonBadResponse, Err: err}
	}
	if len(in.Choices) == 0 {
		return nil, &llm.Error{Reason: llm.ReasonEmpty}
	}
	c := in.Choices[0]
	if c.FinishReason == "content_filter" || c.Message.Refusal != "" {
		return nil, &llm.Error{Reason: llm.ReasonBlocked}
	}
	return notEmpty(&llm.Reply{
		Text: c.Message.Content, Truncated: c.FinishReason == "length",
		Tokens: contract.Tokens{Input: in.Usage.Prompt, Output: in.Usage.Completion, Thinking: in.Usage.Details.Reasoning},
	})
}

func notEmpty(r *llm.Reply) (*llm.Reply, error) {
	if r.Text == "" && !r.Truncated {
		return nil, &llm.Error{Reason: llm.ReasonEmpty}
	}
	return r, nil
}
