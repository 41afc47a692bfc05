// Package openai is the provider for servers with OpenAI's chat completions API:
// OpenAI, vLLM, Ollama, llama.cpp and most gateways. The API is small, so no SDK is
// used. The package also handles the differences between these servers.
//
//	POST {base_url}/chat/completions
//	Authorization: Bearer <key>              omitted without a key
//
//	{"model":…,"messages":[{"role":"system",…},{"role":"user",…}],"max_tokens":300,"temperature":0,
//	 "response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{…}}}}
//
// If a server rejects json_schema with a 400, the error proposes llm.response_format:
// json_object, with which only the prompt describes the reply.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const defaultURL = "https://api.openai.com/v1"

// Provider calls one model of one server.
type Provider struct {
	http                   *http.Client
	base                   *url.URL
	model                  string
	temperature            *float32
	effort                 string // reasoning_effort; "" = not sent
	format                 string // llm.FormatJSONSchema or llm.FormatJSONObject
	useMaxCompletionTokens bool   // max_completion_tokens instead of max_tokens
}

var (
	_ llm.Provider = (*Provider)(nil)
	_ llm.Prober   = (*Provider)(nil)
)

// New validates the configuration. It makes no connection.
func New(cfg llm.Config) (*Provider, error) {
	p := &Provider{model: cfg.Model, format: cmp.Or(cfg.ResponseFormat, llm.FormatJSONSchema)}
	if p.model == "" {
		return nil, errors.New("llm.model is empty: provider openai has no default; write the name that GET {llm.base_url}/models lists")
	}
	var err error
	if p.temperature, err = cfg.RequestTemperature(); err != nil {
		return nil, err
	}
	if p.effort, err = parseEffort(cfg.Thinking); err != nil {
		return nil, err
	}
	if p.http, p.base, err = llm.NewHTTPClient(cfg, llm.Protocol{URL: defaultURL, KeyHeader: "Authorization"}); err != nil {
		return nil, err
	}
	// OpenAI's newer models reject max_tokens; many other servers know nothing
	// else.
	host := p.base.Hostname()
	p.useMaxCompletionTokens = host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
	return p, nil
}

// parseEffort converts llm.thinking to reasoning_effort.
func parseEffort(text string) (string, error) {
	thinking, err := llm.ParseThinking(text)
	switch {
	case err != nil:
		return "", err
	case thinking.Tokens > 0:
		return "", errors.New("llm.thinking is a number of tokens, which provider openai cannot send; write off, minimal, low, medium or high")
	case thinking.Level == llm.ThinkingOff:
		return "none", nil
	}
	return thinking.Level, nil
}

// Close closes idle connections.
func (p *Provider) Close() error {
	p.http.CloseIdleConnections()
	return nil
}

// Probe requests the list of models.
func (p *Provider) Probe(ctx context.Context) error {
	body, err := p.doRequest(ctx, http.MethodGet, "models", nil)
	if err != nil {
		return err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := strictjson.UnmarshalAllowUnknown(body, &list); err != nil {
		return llm.WrapProviderError(ctx, err)
	}
	for _, m := range list.Data {
		// Ollama lists qwen3:latest for qwen3.
		if m.ID == p.model || m.ID == p.model+":latest" {
			return nil
		}
	}
	return &llm.Error{Reason: llm.ReasonRejected, Status: http.StatusOK, Detail: fmt.Sprintf("the server does not list the model of llm.model (models listed: %d)", len(list.Data))}
}

// Generate sends one request to the model.
func (p *Provider) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	body, err := strictjson.Marshal(p.newRequest(req))
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	answer, err := p.doRequest(llm.WithRequest(ctx, req), http.MethodPost, "chat/completions", body)
	if err != nil {
		if req.Schema != nil {
			err = p.proposeFormat(err)
		}
		return nil, err
	}
	return decodeResponse(answer)
}

// proposeFormat adds a proposal to the error of a server that does not support
// json_schema. Servers describe that in different words.
func (p *Provider) proposeFormat(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Reason != llm.ReasonRejected || p.format != llm.FormatJSONSchema {
		return err
	}
	detail := strings.ToLower(e.Detail)
	if !strings.Contains(detail, "response_format") && !strings.Contains(detail, "schema") {
		return err
	}
	proposal := *e
	proposal.Detail += "; if the server does not support json_schema, set llm.response_format: json_object"
	return &proposal
}

func (p *Provider) doRequest(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, llm.WrapProviderError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body) // already in memory
	if err != nil {
		return nil, llm.WrapProviderError(ctx, err)
	}
	return answer, nil
}
