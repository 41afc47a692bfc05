package telemetry

import (
	"context"

	"github.com/caprouter/caprouter/internal/llm"
)

// The semantic conventions for generative AI are not stable, so their names are our own
// constants.
const (
	attrGenAIProvider     = "gen_ai.provider.name"
	attrGenAIModel        = "gen_ai.request.model"
	attrGenAIMaxTokens    = "gen_ai.request.max_tokens"
	attrGenAIInputTokens  = "gen_ai.usage.input_tokens"
	attrGenAIOutputTokens = "gen_ai.usage.output_tokens"
	attrModelPurpose      = "caprouter.model.purpose"
)

// TracedModel is a language model whose calls are spans.
type TracedModel struct{ *llm.Client }

// Generate calls the model. A retry is a part of the call.
func (m TracedModel) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	ctx, span := StartClientSpan(ctx, "chat "+m.Model())
	defer span.End()
	span.SetString(AttrGenAIOp, "chat")
	span.SetString(attrGenAIProvider, genAIProvider(m.Provider()))
	span.SetString(attrGenAIModel, m.Model())
	span.SetString(attrModelPurpose, string(req.Purpose))
	span.SetInt(attrGenAIMaxTokens, req.MaxOutputTokens)
	reply, err := m.Client.Generate(ctx, req)
	if err != nil {
		span.Fail(llm.ReasonOf(err))
		return nil, err
	}
	span.SetInt(attrGenAIInputTokens, reply.Tokens.Input)
	span.SetInt(attrGenAIOutputTokens, reply.Tokens.Output)
	return reply, nil
}

// genAIProvider returns the provider as the conventions name it.
func genAIProvider(name string) string {
	if name == "gemini" || name == "genai" {
		return "gcp.gemini"
	}
	return name
}
