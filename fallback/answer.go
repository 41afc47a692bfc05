package fallback

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/prompts"
)

// Model is what Answer asks; *llm.Client is one.
type Model interface {
	Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error)
	Provider() string
	Model() string
}

// AnswerInput is what the model is shown of a request. Its texts are masked.
type AnswerInput struct {
	Prompt  string
	History []contract.Turn
	Locale  string                   // BCP 47; "" = not known
	Restore func(text string) string // gives the caller its own values back, a bracketed word at a time; nil = nothing is masked
	// May is asked when the model is about to be, and only then: whether the caller
	// may have one more answer; nil = always.
	TakeAnswer func() bool
	Now        func() time.Time // nil = time.Now; the call's latency is measured with it
}

// ReasonLimited is why a model is not asked for a caller who has had as many of
// its answers as it may for now.
const ReasonLimited = "rate_limited"

// maxAnswerTime is how long the model gets for an answer, however patient the caller
// is: who is told what is served instead can go on.
const maxAnswerTime = 15 * time.Second

// What is kept back of the time a request has, so that the caller still hears
// that the model was too slow: a tenth, and no more than this.
const maxReserve = 100 * time.Millisecond

// Answer answers the request directly (003 §5 A): with the model's words under
// our preamble or, when there are none, with what could be asked for instead. The
// facts of policy B stand beside either. It does not fail: where the caller left
// the reason is llm.OutcomeCancelled.
func Answer(ctx context.Context, m Model, u *Unmet, in AnswerInput) contract.ResponseData {
	lang := chooseLanguage(u.Catalogue.Fallback.Language, in.Locale, in.Prompt)
	data := contract.ResponseData{
		Mode: contract.DataServerFallback, Classification: &u.Decision.Classification, Unsupported: Unsupported(u),
	}
	said := modelAnswer{reason: skipReason(ctx, m, u)}
	if said.reason == "" && in.TakeAnswer != nil && !in.TakeAnswer() {
		said.reason = ReasonLimited
	}
	if said.reason == "" {
		said = askModel(ctx, m, u.Catalogue.Fallback.MaxTokens, lang.tag, &in)
	}
	data.AnsweredBy = said.modelUse
	if said.reason == "" {
		data.Answer = lang.texts.formatPreamble(u) + "\n\n" + said.text
		return data
	}
	data.Degraded, data.DegradedReason = true, said.reason
	data.Answer = lang.texts.formatDegraded(u, said.reason, data.Unsupported)
	return data
}

// skipReason returns why the model is not even asked; "" when it is. What the
// classifier found out about it a moment ago still holds: a model that is dead
// costs a request the classifier's patience, and not this one's as well.
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

// isModelUnavailable reports whether a reason says that the model is not to be had now,
// whatever it is asked.
func isModelUnavailable(reason string) bool {
	switch reason {
	case llm.ReasonTimeout, llm.ReasonUnavailable, llm.ReasonRateLimited, llm.ReasonUnauthorized, llm.ReasonBreakerOpen, llm.ReasonOverloaded, llm.ReasonBudget:
		return true
	}
	return false
}

// failureReason is llm.ReasonOf, without blame for the model where the caller left.
func failureReason(err error) string {
	if errors.Is(err, context.Canceled) {
		return llm.OutcomeCancelled
	}
	return llm.ReasonOf(err)
}

// modelAnswer is what came of asking: a text, or the reason why there is none.
type modelAnswer struct {
	text     string
	reason   string
	modelUse *contract.ModelUse
}

// askModel makes the one call.
func askModel(ctx context.Context, m Model, maxTokens int, language string, in *AnswerInput) modelAnswer {
	if maxTokens <= 0 {
		maxTokens = capabilities.DefaultFallback().MaxTokens
	}
	now := in.Now
	if now == nil {
		now = time.Now
	}
	said := modelAnswer{modelUse: &contract.ModelUse{
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
	call.LatencyMS = float64(now().Sub(start).Round(time.Microsecond)) / float64(time.Millisecond)
	if reply != nil {
		call.Tokens = reply.Tokens
	}
	said.text, said.reason, call.Detail = checkReply(reply, err, in.Restore, maxTokens)
	if said.reason != "" {
		call.Outcome = said.reason
	}
	said.modelUse.Tokens.Add(call.Tokens)
	said.modelUse.Calls = append(said.modelUse.Calls, call)
	return said
}

// withAnswerTimeout ends after maxWait, or a little before the context does.
func withAnswerTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := maxAnswerTime
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(maxReserve, left/10))
	}
	return context.WithTimeout(ctx, wait)
}

// checkReply returns the text for the caller, or the reason why there is none; the
// detail is for the record of the call.
func checkReply(reply *llm.Reply, err error, restore func(string) string, maxTokens int) (text, reason, detail string) {
	if err != nil {
		if e, ok := errors.AsType[*llm.Error](err); ok {
			detail = e.Detail
		}
		return "", failureReason(err), detail // the text of any other error is not made to be shown
	}
	if reply == nil {
		return "", llm.ReasonEmpty, "no reply"
	}
	text = cleanText(reply.Text)
	if text == "" {
		if reply.Truncated {
			return "", llm.ReasonMaxTokens, "cut off before the first word"
		}
		return "", llm.ReasonEmpty, "no text"
	}
	most, truncated := maxTokens*bytesPerToken, reply.Truncated
	if restore != nil {
		var full bool
		text, full = restoreValues(text, most, restore)
		truncated = truncated || full
	}
	text, cut := truncateText(text, most, truncated)
	if cut {
		detail = "cut off: it ends early"
	}
	return text, "", detail
}
