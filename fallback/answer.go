package fallback

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/prompts"
)

// Model is the model that Answer calls. *llm.Client implements it.
type Model interface {
	Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error)
	Provider() string
	Model() string
}

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

// maxAnswerTime bounds a model call even if the caller's deadline is later.
const maxAnswerTime = 15 * time.Second

// maxReserve bounds the tenth of the remaining time that is reserved, so that a
// caller still receives a response if the model is too slow.
const maxReserve = 100 * time.Millisecond

// Answer answers the request by policy A: with the text of the model after a
// preamble or, if there is none, with what the caller can ask for instead. It does
// not fail. If the caller disconnected, the reason is llm.OutcomeCancelled.
func Answer(ctx context.Context, m Model, u *Unmet, in AnswerInput) contract.ResponseData {
	lang := u.language()
	data := contract.ResponseData{
		Mode: contract.DataServerFallback, Classification: &u.Decision.Classification, Unsupported: Unsupported(u),
	}
	answer := modelAnswer{reason: skipReason(ctx, m, u)}
	if answer.reason == "" && in.TakeAnswer != nil && !in.TakeAnswer() {
		answer.reason = ReasonLimited
	}
	if answer.reason == "" {
		answer = askModel(ctx, m, u.Catalogue.Fallback.MaxTokens, lang.tag, &in)
	}
	data.AnsweredBy = answer.modelUse
	if answer.reason == "" {
		data.Answer = lang.texts.formatPreamble(u) + "\n\n" + answer.text
		return data
	}
	data.Degraded, data.DegradedReason = true, answer.reason
	data.Answer = lang.texts.formatDegraded(u, answer.reason, data.Unsupported)
	return data
}

// skipReason returns why the model is not called, or "" if it is. A reason that the
// classifier found a moment ago still holds: a request does not wait for a model
// that is unavailable twice.
func skipReason(ctx context.Context, m Model, u *Unmet) string {
	reason := u.Decision.Classification.Reason
	switch {
	case m == nil:
		return llm.ReasonNotConfigured
	case ctx.Err() != nil:
		return failureReason(ctx.Err())
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

// failureReason is llm.ReasonOf, except if the caller disconnected: the model did
// not fail then.
func failureReason(err error) string {
	if errors.Is(err, context.Canceled) {
		return llm.OutcomeCancelled
	}
	return llm.ReasonOf(err)
}

// modelAnswer is a text, or the reason why there is none.
type modelAnswer struct {
	text     string
	reason   string
	modelUse *contract.ModelUse
}

// askModel calls the model once.
func askModel(ctx context.Context, m Model, maxTokens int, language string, in *AnswerInput) modelAnswer {
	if maxTokens <= 0 {
		maxTokens = capabilities.DefaultFallback().MaxTokens
	}
	now := in.Now
	if now == nil {
		now = time.Now
	}
	answer := modelAnswer{modelUse: &contract.ModelUse{
		Provider: m.Provider(), Model: m.Model(), PromptVersion: prompts.AnswerVersion, Calls: []contract.ModelCall{},
	}}
	ctx, cancel := withAnswerTimeout(ctx)
	defer cancel()

	text := (&prompts.AnswerData{Prompt: in.Prompt, History: in.History, Language: language, MaxTokens: maxTokens}).Render()
	start := now()
	reply, err := m.Generate(ctx, &llm.Request{
		Purpose: contract.PurposeAnswer, System: text.System, User: text.User, MaxOutputTokens: maxTokens,
	})
	call := contract.ModelCall{Purpose: contract.PurposeAnswer, Outcome: contract.OutcomeOK}
	call.LatencyMS = contract.ToMilliseconds(now().Sub(start))
	if reply != nil {
		call.Tokens = reply.Tokens
	}
	answer.text, answer.reason, call.Detail = checkReply(reply, err, in.Restore, maxTokens)
	if answer.reason != "" {
		call.Outcome = answer.reason
	}
	answer.modelUse.Tokens.Add(call.Tokens)
	answer.modelUse.Calls = append(answer.modelUse.Calls, call)
	return answer
}

// withAnswerTimeout ends after maxAnswerTime, or shortly before ctx does.
func withAnswerTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := maxAnswerTime
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(maxReserve, left/10))
	}
	return context.WithTimeout(ctx, wait)
}

// checkReply returns the text for the caller, or the reason why there is none. The
// detail is for the report of the call.
func checkReply(reply *llm.Reply, err error, restore func(string) string, maxTokens int) (text, reason, detail string) {
	if err != nil {
		if e, ok := errors.AsType[*llm.Error](err); ok {
			detail = e.Detail
		}
		return "", failureReason(err), detail // other errors may contain internal details
	}
	if reply == nil {
		return "", llm.ReasonEmpty, "no reply"
	}
	text = plaintext.Clean(reply.Text)
	if text == "" {
		if reply.Truncated {
			return "", llm.ReasonMaxTokens, "truncated before the first word"
		}
		return "", llm.ReasonEmpty, "no text"
	}
	maxBytes, truncated := maxTokens*bytesPerToken, reply.Truncated
	if restore != nil {
		var full bool
		text, full = restoreValues(text, maxBytes, restore)
		truncated = truncated || full
	}
	text, cut := truncateText(text, maxBytes, truncated)
	if cut {
		detail = "truncated"
	}
	return text, "", detail
}
