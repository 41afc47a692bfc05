package fallback

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/prompts"
)

// AnswerInput is the part of a request that a model gets. Its texts are masked.
type AnswerInput struct {
	Prompt  string
	History []contract.Turn
	Restore func(text string) string // restores the masked value of a placeholder; nil = nothing is masked
	// TakeAnswer takes one answer of the caller's limit and reports whether there
	// was one. It is called only if the model is about to be called; nil = no limit.
	TakeAnswer func() bool
	Now        func() time.Time // measures the latency of the call; nil = time.Now
}

// ReasonLimited is the reason if the caller has reached its limit of answers.
const ReasonLimited = "rate_limited"

// Answer answers the request by policy A: with the text of the model after a
// preamble or, if there is none, with what the caller can ask for instead. It does
// not fail. If the caller disconnected, the reason is llm.OutcomeCancelled.
func Answer(ctx context.Context, m modeltext.Model, u *Unmet, in AnswerInput) contract.ResponseData {
	lang := u.language()
	data := contract.ResponseData{
		Mode: contract.DataServerFallback, Classification: &u.Decision.Classification, Unsupported: Unsupported(u),
	}
	answer := modeltext.Answer{Reason: skipReason(ctx, m, u)}
	if answer.Reason == "" && in.TakeAnswer != nil && !in.TakeAnswer() {
		answer.Reason = ReasonLimited
	}
	if answer.Reason == "" {
		answer = askModel(ctx, m, u.Catalogue.Fallback.MaxTokens, lang.tag, &in)
	}
	data.AnsweredBy = answer.Use
	if answer.Reason == "" {
		data.Answer = lang.texts.formatPreamble(u) + "\n\n" + answer.Text
		return data
	}
	data.Degraded, data.DegradedReason = true, answer.Reason
	data.Answer = lang.texts.formatDegraded(u, answer.Reason, data.Unsupported)
	return data
}

func askModel(ctx context.Context, m modeltext.Model, maxTokens int, language string, in *AnswerInput) modeltext.Answer {
	if maxTokens <= 0 {
		maxTokens = capabilities.DefaultFallback().MaxTokens
	}
	return modeltext.Ask(ctx, m, &modeltext.Question{
		Purpose: contract.PurposeAnswer, PromptVersion: prompts.AnswerVersion,
		Prompt:    (&prompts.AnswerData{Prompt: in.Prompt, History: in.History, Language: language, MaxTokens: maxTokens}).Render(),
		MaxTokens: maxTokens, Restore: in.Restore, Now: in.Now,
	})
}

// skipReason returns why the model is not called, or "" if it is. A reason that the
// classifier found a moment ago still holds: a request does not wait for a model
// that is unavailable twice.
func skipReason(ctx context.Context, m modeltext.Model, u *Unmet) string {
	reason := u.Decision.Classification.Reason
	switch {
	case m == nil:
		return llm.ReasonNotConfigured
	case ctx.Err() != nil:
		return modeltext.FailureReason(ctx.Err())
	case isModelUnavailable(reason):
		return reason
	}
	return ""
}

// isModelUnavailable reports whether the reason does not depend on the prompt.
func isModelUnavailable(reason string) bool {
	switch reason {
	case llm.ReasonTimeout, llm.ReasonUnavailable, llm.ReasonRateLimited, llm.ReasonUnauthorized, llm.ReasonBreakerOpen, llm.ReasonOverloaded, llm.ReasonBudget:
		return true
	}
	return false
}
