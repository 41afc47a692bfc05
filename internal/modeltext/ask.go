// Package modeltext asks a language model for a text that a caller reads: a direct answer,
// or a summary of results. It bounds time and length, restores masked values, and reports
// the call.
package modeltext

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/prompts"
)

// Model is the model that Ask calls. *llm.Client implements it.
type Model interface {
	Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error)
	Provider() string
	Model() string
}

// Question is a question to a model. Its texts are masked.
type Question struct {
	Purpose       contract.CallPurpose
	PromptVersion string
	Prompt        prompts.Messages
	MaxTokens     int                      // of the text, more than 0
	Restore       func(text string) string // restores the masked value of a placeholder; nil = nothing is masked
	Now           func() time.Time         // measures the latency of the call; nil = time.Now
}

// Answer is the text of the model, or the reason why there is none: one of package llm.
type Answer struct {
	Text   string
	Reason string             // "" if there is a text; llm.OutcomeCancelled if the caller disconnected
	Use    *contract.ModelUse // the call
}

// maxTime bounds a call even if the caller's deadline is later.
const maxTime = 15 * time.Second

// maxReserve bounds the tenth of the remaining time that is reserved, so that a
// caller still receives a response if the model is too slow.
const maxReserve = 100 * time.Millisecond

// Ask calls the model once. It ends before the deadline of ctx, and after 15 s at most.
func Ask(ctx context.Context, m Model, q *Question) Answer {
	now := q.Now
	if now == nil {
		now = time.Now
	}
	ctx, cancel := withTimeout(ctx)
	defer cancel()

	start := now()
	reply, err := m.Generate(ctx, &llm.Request{
		Purpose: q.Purpose, System: q.Prompt.System, User: q.Prompt.User, MaxOutputTokens: q.MaxTokens,
	})
	call := contract.ModelCall{Purpose: q.Purpose, Outcome: contract.OutcomeOK}
	call.LatencyMS = contract.ToMilliseconds(now().Sub(start))
	if reply != nil {
		call.Tokens = reply.Tokens
	}
	var answer Answer
	answer.Text, answer.Reason, call.Detail = checkReply(reply, err, q)
	if answer.Reason != "" {
		call.Outcome = answer.Reason
	}
	answer.Use = &contract.ModelUse{
		Provider: m.Provider(), Model: m.Model(), PromptVersion: q.PromptVersion, Calls: []contract.ModelCall{call},
	}
	answer.Use.Tokens.Add(call.Tokens)
	return answer
}

// withTimeout ends after maxTime, or shortly before ctx does.
func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := maxTime
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(maxReserve, left/10))
	}
	return context.WithTimeout(ctx, wait)
}

// FailureReason is llm.ReasonOf, except if the caller disconnected: the model did
// not fail then.
func FailureReason(err error) string {
	if errors.Is(err, context.Canceled) {
		return llm.OutcomeCancelled
	}
	return llm.ReasonOf(err)
}

// checkReply returns the text for the caller, or the reason why there is none. The
// detail is for the report of the call.
func checkReply(reply *llm.Reply, err error, q *Question) (text, reason, detail string) {
	if err != nil {
		if e, ok := errors.AsType[*llm.Error](err); ok {
			detail = e.Detail
		}
		return "", FailureReason(err), detail // other errors may contain internal details
	}
	if reply == nil {
		return "", llm.ReasonEmpty, "no reply"
	}
	text = removeImages(plaintext.Clean(reply.Text))
	if text == "" {
		if reply.Truncated {
			return "", llm.ReasonMaxTokens, "truncated before the first word"
		}
		return "", llm.ReasonEmpty, "no text"
	}
	maxBytes, truncated := q.MaxTokens*bytesPerToken, reply.Truncated
	if q.Restore != nil {
		var full bool
		text, full = restoreValues(text, maxBytes, q.Restore)
		truncated = truncated || full
	}
	text, cut := truncateText(text, maxBytes, truncated)
	if cut {
		detail = "truncated"
	}
	return text, "", detail
}
