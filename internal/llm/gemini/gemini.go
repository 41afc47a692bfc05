// Package gemini is the provider on github.com/google/generative-ai-go, the
// SDK named by the source document (003 §2). It owns that SDK, and what has to be
// done about its age: it is no longer maintained, knows nothing of thinking,
// passes thoughts on as part of the answer, repeats a 503 by itself, puts the key
// into the URL, opens a gRPC connection for a feature nobody here uses, and
// panics at parts it does not know. Provider genai speaks the same API with the
// SDK that replaced it.
//
//	llm.Request ─▶ GenerativeModel ─▶ SDK ─▶ llm.NewHTTPClient ─▶ …/v1beta/{model}:generateContent
//	llm.Reply   ◀─ reply ◀───────── SDK ◀─ onlyAnswers  ◀──────────────┘
package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	gtransport "google.golang.org/api/transport/grpc"

	"github.com/caprouter/caprouter/internal/llm"
)

// Provider asks one Gemini model. Make one with New.
type Provider struct {
	client      *genai.Client
	http        *http.Client
	model       string // models/{name}
	temperature *float32
}

var (
	_ llm.Provider = (*Provider)(nil)
	_ llm.Prober   = (*Provider)(nil)
)

// noConnections stands in for the pool of gRPC connections that the SDK opens
// for cached content, to its default host and without asking. Nothing calls it.
type noConnections struct{ gtransport.ConnPool }

// New checks the configuration. It contacts nobody.
func New(cfg llm.Config) (*Provider, error) {
	p := &Provider{}
	var err error
	if p.model, err = cfg.GeminiModel(); err != nil {
		return nil, err
	}
	if p.temperature, err = cfg.RequestTemperature(); err != nil {
		return nil, err
	}
	thinking, err := llm.ParseThinking(cfg.Thinking)
	if err != nil {
		return nil, err
	}
	if thinking != (llm.Thinking{}) {
		return nil, errors.New("llm.thinking is set, but the SDK of provider gemini is older than thinking: use llm.provider: genai, or leave it out")
	}
	client, base, err := llm.NewHTTPClient(cfg, llm.Protocol{URL: llm.DefaultGeminiURL, KeyHeader: "x-goog-api-key", Filter: onlyAnswers})
	if err != nil {
		return nil, err
	}
	p.http = client
	// The SDK never sees the key. With an HTTP client of ours it looks for no
	// credentials either, and the explicit endpoint keeps the environment out.
	p.client, err = genai.NewClient(context.Background(),
		option.WithHTTPClient(client),
		option.WithEndpoint(base.String()),
		gtransport.WithConnPool(noConnections{}),
		internaloption.SkipDialSettingsValidation(), // which refuses the two above together
	)
	if err != nil {
		return nil, fmt.Errorf("set up the Gemini SDK: %w", err)
	}
	return p, nil
}

// Close closes idle connections.
func (p *Provider) Close() error {
	p.http.CloseIdleConnections()
	return nil
}

// Probe asks for the model's description.
func (p *Provider) Probe(ctx context.Context) (err error) {
	defer llm.RecoverPanic(&err)
	if _, err := p.client.GenerativeModel(p.model).Info(ctx); err != nil {
		return llm.WrapProviderError(ctx, err)
	}
	return nil
}

// Generate asks the model once.
func (p *Provider) Generate(ctx context.Context, req *llm.Request) (reply *llm.Reply, err error) {
	defer llm.RecoverPanic(&err)
	resp, err := p.configured(req).GenerateContent(llm.WithRequest(ctx, req), genai.Text(req.User))
	if blocked, ok := errors.AsType[*genai.BlockedError](err); ok {
		return nil, blockedError(blocked)
	}
	if err != nil {
		return nil, llm.WrapProviderError(ctx, err)
	}
	return read(resp)
}

func (p *Provider) configured(req *llm.Request) *genai.GenerativeModel {
	model := p.client.GenerativeModel(p.model)
	model.Temperature = p.temperature
	model.SetCandidateCount(1)
	if req.MaxOutputTokens > 0 {
		model.SetMaxOutputTokens(int32(min(req.MaxOutputTokens, 1<<20)))
	}
	if req.System != "" {
		model.SystemInstruction = genai.NewUserContent(genai.Text(req.System))
	}
	if req.Schema != nil {
		model.ResponseMIMEType = "application/json"
		model.ResponseSchema = schema(req.Schema)
	}
	return model
}

// schema is s in the SDK's words. They have no order of properties.
func schema(s *llm.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := &genai.Schema{Description: s.Description, Enum: s.Enum, Items: schema(s.Items)}
	switch s.Type {
	case "object":
		out.Type, out.Properties = genai.TypeObject, map[string]*genai.Schema{}
	case "array":
		out.Type = genai.TypeArray
	case "number":
		out.Type = genai.TypeNumber
	default:
		out.Type = genai.TypeString
	}
	if len(s.Enum) > 0 {
		out.Format = "enum"
	}
	for _, p := range s.Properties {
		out.Properties[p.Name] = schema(p.Schema)
		out.Required = append(out.Required, p.Name)
	}
	return out
}
