// Package openai is the provider for every server that speaks OpenAI's chat
// completions: OpenAI, vLLM, Ollama, llama.cpp and most gateways. It owns that
// wire, which is small enough to need no SDK, and the places where those servers
// differ.
//
//	POST {base_url}/chat/completions
//	Authorization: Bearer <key>              not sent without one
//
//	{"model":…,"messages":[{"role":"system",…},{"role":"user",…}],"max_tokens":300,"temperature":0,
//	 "response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{…}}}}
//
// A server that refuses json_schema answers 400, which stays an error: a reply
// of another shape than was asked for would be found wrong one step later, after
// the tokens were paid for.
package openai

import (
	"bytes"
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

const standardURL = "https://api.openai.com/v1"

// Provider asks one model of one server. Make one with New.
type Provider struct {
	http        *http.Client
	base        *url.URL
	model       string
	temperature *float32
	effort      string // reasoning_effort; "" = not sent
	completion  bool   // max_completion_tokens instead of max_tokens
}

var (
	_ llm.Provider = (*Provider)(nil)
	_ llm.Prober   = (*Provider)(nil)
)

// New checks the configuration. It contacts nobody.
func New(cfg llm.Config) (*Provider, error) {
	p := &Provider{model: cfg.Model}
	if p.model == "" {
		return nil, errors.New("llm.model is empty: provider openai has no default; write the name that GET {llm.base_url}/models lists")
	}
	var err error
	if p.temperature, err = cfg.RequestTemperature(); err != nil {
		return nil, err
	}
	if p.effort, err = effort(cfg.Thinking); err != nil {
		return nil, err
	}
	if p.http, p.base, err = llm.NewHTTPClient(cfg, llm.Protocol{URL: standardURL, KeyHeader: "Authorization"}); err != nil {
		return nil, err
	}
	// OpenAI's newer models refuse the old name; many other servers know no other.
	host := p.base.Hostname()
	p.completion = host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
	return p, nil
}

// effort is llm.thinking as reasoning_effort.
func effort(text string) (string, error) {
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

// Probe asks for the list of models.
func (p *Provider) Probe(ctx context.Context) error {
	body, err := p.ask(ctx, http.MethodGet, "models", nil)
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
		// Ollama lists qwen3:latest, and takes qwen3.
		if m.ID == p.model || m.ID == p.model+":latest" {
			return nil
		}
	}
	return &llm.Error{Reason: llm.ReasonRejected, Status: http.StatusOK, Detail: fmt.Sprintf("the server lists %d models, and not the one of llm.model", len(list.Data))}
}

// Generate asks the model once.
func (p *Provider) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	body, err := strictjson.Marshal(p.question(req))
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	answer, err := p.ask(llm.WithRequest(ctx, req), http.MethodPost, "chat/completions", body)
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

func (p *Provider) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
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
	answer, err := io.ReadAll(resp.Body) // in memory already
	if err != nil {
		return nil, llm.WrapProviderError(ctx, err)
	}
	return answer, nil
}
