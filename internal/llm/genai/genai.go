// Package genai is a provider that uses google.golang.org/genai, the maintained SDK
// of the Gemini API. The package handles what the SDK does not: blocked or truncated
// replies are not errors, thoughts are among the parts, one call may become several,
// and an unexpected type panics.
//
//	llm.Request ─▶ GenerateContentConfig ─▶ SDK ─▶ llm.NewHTTPClient ─▶ …/v1beta/{model}:generateContent
//	llm.Reply   ◀─ readResponse ◀───────── SDK ◀────────┘
package genai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// Provider calls one Gemini model.
type Provider struct {
	client      *genai.Client
	http        *http.Client
	model       string // models/{name}
	temperature *float32
	thinking    *genai.ThinkingConfig // nil = default of the model
}

var (
	_ llm.Provider = (*Provider)(nil)
	_ llm.Prober   = (*Provider)(nil)
)

// New validates the configuration. It makes no connection.
func New(cfg llm.Config) (*Provider, error) {
	p := &Provider{}
	var err error
	if p.model, err = cfg.GeminiModel(); err != nil {
		return nil, err
	}
	if p.temperature, err = cfg.RequestTemperature(); err != nil {
		return nil, err
	}
	if p.thinking, err = thinkingConfig(cfg.Thinking, p.model); err != nil {
		return nil, err
	}
	client, base, err := llm.NewHTTPClient(cfg, llm.Protocol{URL: llm.DefaultGeminiURL, KeyHeader: "x-goog-api-key"})
	if err != nil {
		return nil, err
	}
	p.http = client
	// All fields are set, so that the SDK takes neither key nor host nor
	// credentials from the environment. The transport replaces the key.
	p.client, err = genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey:      "none",
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  client,
		HTTPOptions: genai.HTTPOptions{BaseURL: base.String(), APIVersion: "v1beta"},
	})
	if err != nil {
		return nil, errors.New("the Gemini SDK cannot be set up with this configuration") // the error may contain the configuration
	}
	return p, nil
}

// Close closes idle connections.
func (p *Provider) Close() error {
	p.http.CloseIdleConnections()
	return nil
}

// Probe requests the description of the model.
func (p *Provider) Probe(ctx context.Context) (err error) {
	defer llm.RecoverPanic(&err)
	if _, err := p.client.Models.Get(ctx, p.model, nil); err != nil {
		return llm.WrapProviderError(ctx, err)
	}
	return nil
}

// Generate sends one request to the model.
func (p *Provider) Generate(ctx context.Context, req *llm.Request) (reply *llm.Reply, err error) {
	defer llm.RecoverPanic(&err)
	resp, err := p.client.Models.GenerateContent(llm.WithRequest(ctx, req), p.model, genai.Text(req.User), p.requestConfig(req))
	if err != nil {
		return nil, llm.WrapProviderError(ctx, err)
	}
	return readResponse(resp)
}

func (p *Provider) requestConfig(req *llm.Request) *genai.GenerateContentConfig {
	cfg := &genai.GenerateContentConfig{
		Temperature:    p.temperature,
		CandidateCount: 1,
		ThinkingConfig: p.thinking,
		// Otherwise the SDK repeats the request as often as the server asks for
		// it.
		AutomaticContinuation: new(bool),
	}
	if req.MaxOutputTokens > 0 {
		cfg.MaxOutputTokens = int32(min(req.MaxOutputTokens, 1<<20))
	}
	if req.System != "" {
		cfg.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: req.System}}}
	}
	if req.Schema != nil {
		cfg.ResponseMIMEType = "application/json"
		if !req.Schema.FreeForm() {
			cfg.ResponseSchema = convertSchema(req.Schema)
		}
	}
	return cfg
}

func convertSchema(s *llm.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := &genai.Schema{
		Type:        genai.Type(strings.ToUpper(s.Type)),
		Description: s.Description,
		Enum:        s.Enum,
		Items:       convertSchema(s.Items),
	}
	if len(s.Enum) > 0 {
		out.Format = "enum"
	}
	for _, p := range s.Properties {
		if out.Properties == nil {
			out.Properties = map[string]*genai.Schema{}
		}
		out.Properties[p.Name] = convertSchema(p.Schema)
		out.Required = append(out.Required, p.Name)
		out.PropertyOrdering = append(out.PropertyOrdering, p.Name)
	}
	return out
}

// readResponse converts a response. The SDK returns blocked content without an
// error.
func readResponse(resp *genai.GenerateContentResponse) (*llm.Reply, error) {
	used := tokenCounts(resp.UsageMetadata)
	if len(resp.Candidates) == 0 || resp.Candidates[0] == nil {
		if resp.PromptFeedback != nil {
			return nil, llm.BlockedError("prompt", string(resp.PromptFeedback.BlockReason))
		}
		return llm.NewReply("", llm.FinishComplete, "no candidates", used)
	}
	candidate := resp.Candidates[0]
	finish := string(candidate.FinishReason)
	var text strings.Builder
	if candidate.Content != nil {
		for _, part := range candidate.Content.Parts {
			if part != nil && !part.Thought {
				text.WriteString(part.Text)
			}
		}
	}
	return llm.NewReply(text.String(), llm.GeminiFinishReason(finish), finish, used)
}

func tokenCounts(u *genai.GenerateContentResponseUsageMetadata) contract.Tokens {
	if u == nil {
		return contract.Tokens{}
	}
	thinking := max(int(u.ThoughtsTokenCount), 0)
	return contract.Tokens{
		Input:    max(int(u.PromptTokenCount), 0),
		Output:   max(int(u.CandidatesTokenCount), 0) + thinking,
		Thinking: thinking,
	}
}

// thinkingConfig converts llm.thinking for a model. It rejects values that a
// whole model generation does not support; the server rejects the others.
func thinkingConfig(text, model string) (*genai.ThinkingConfig, error) {
	want, err := llm.ParseThinking(text)
	if err != nil || want == (llm.Thinking{}) {
		return nil, err
	}
	name := strings.TrimPrefix(model, "models/")
	refuse := func(advice string) (*genai.ThinkingConfig, error) {
		return nil, fmt.Errorf("llm.thinking: %s is nothing %s can do; %s", text, name, advice)
	}
	budget := func(n int) (*genai.ThinkingConfig, error) {
		tokens := int32(n)
		return &genai.ThinkingConfig{ThinkingBudget: &tokens}, nil
	}
	leveled := want.Tokens == 0 && want.Level != llm.ThinkingOff
	switch {
	case strings.HasPrefix(name, "gemini-1"), strings.HasPrefix(name, "gemini-2.0"):
		return refuse("it does not think: leave it out")
	case strings.HasPrefix(name, "gemini-2.5-pro") && want.Level == llm.ThinkingOff:
		return refuse("it always thinks: write a number of tokens from 128")
	case strings.HasPrefix(name, "gemini-2") && leveled:
		return refuse("write off or a number of tokens")
	case strings.HasPrefix(name, "gemini-") && !strings.HasPrefix(name, "gemini-2") && !leveled:
		return refuse("write minimal, low, medium or high")
	case want.Level == llm.ThinkingOff:
		return budget(0)
	case leveled:
		return &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(want.Level))}, nil
	}
	return budget(want.Tokens)
}
