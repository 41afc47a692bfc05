// Package gemini is a provider that uses github.com/google/generative-ai-go, an
// older SDK of the Gemini API that is no longer maintained. The package works
// around its limits: it does not know thinking and returns thoughts as part of the
// answer, retries a 503 by itself, puts the key into the URL, opens an unused gRPC
// connection, and panics on parts it does not know. Package llm/genai uses its
// successor.
//
//	llm.Request ─▶ GenerativeModel ─▶ SDK ─▶ llm.NewHTTPClient ─▶ …/v1beta/{model}:generateContent
//	llm.Reply   ◀─ readResponse ◀─── SDK ◀─ filterResponse ◀─────────┘
package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"

	"github.com/caprouter/caprouter/internal/llm"
)

// Provider calls one Gemini model.
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

// noConnections is the size of the pool of gRPC connections that the SDK opens for
// cached content, a feature that is not used here. A pool of size 0 has one connection.
const noConnections = -1

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
	thinking, err := llm.ParseThinking(cfg.Thinking)
	if err != nil {
		return nil, err
	}
	if thinking != (llm.Thinking{}) {
		return nil, errors.New("llm.thinking is set, but the SDK of provider gemini is older than thinking: use llm.provider: genai, or leave it out")
	}
	client, base, err := llm.NewHTTPClient(cfg, llm.Protocol{URL: llm.DefaultGeminiURL, KeyHeader: "x-goog-api-key", Filter: filterResponse})
	if err != nil {
		return nil, err
	}
	p.http = client
	// The SDK never receives the key. With its own HTTP client it looks for no
	// credentials, and an explicit endpoint keeps the environment out.
	p.client, err = genai.NewClient(context.Background(),
		option.WithHTTPClient(client),
		option.WithEndpoint(base.String()),
		option.WithoutAuthentication(),
		option.WithGRPCConnectionPool(noConnections),
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

// Probe requests the description of the model.
func (p *Provider) Probe(ctx context.Context) (err error) {
	defer llm.RecoverPanic(&err)
	if _, err := p.client.GenerativeModel(p.model).Info(ctx); err != nil {
		return llm.WrapProviderError(ctx, err)
	}
	return nil
}

// Generate sends one request to the model.
func (p *Provider) Generate(ctx context.Context, req *llm.Request) (reply *llm.Reply, err error) {
	defer llm.RecoverPanic(&err)
	resp, err := p.newModel(req).GenerateContent(llm.WithRequest(ctx, req), genai.Text(req.User))
	if blocked, ok := errors.AsType[*genai.BlockedError](err); ok {
		return nil, blockedError(blocked)
	}
	if err != nil {
		return nil, llm.WrapProviderError(ctx, err)
	}
	return readResponse(resp)
}

func (p *Provider) newModel(req *llm.Request) *genai.GenerativeModel {
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
		if !req.Schema.FreeForm() {
			model.ResponseSchema = convertSchema(req.Schema)
		}
	}
	return model
}

// convertSchema converts a schema to the type of the SDK, which has no order of
// properties.
func convertSchema(s *llm.Schema) *genai.Schema {
	if s == nil {
		return nil
	}
	out := &genai.Schema{Description: s.Description, Enum: s.Enum, Items: convertSchema(s.Items)}
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
		out.Properties[p.Name] = convertSchema(p.Schema)
		out.Required = append(out.Required, p.Name)
	}
	return out
}
