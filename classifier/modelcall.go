package classifier

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/prompts"
)

// retryTokenFactor multiplies the token limit after a reply was cut off.
const retryTokenFactor = 4

// askModel waits for the model's classification of the input, together with all
// callers of the same request. The call continues if a caller gives up, because
// its result is useful for the next caller and a short deadline is not a
// failure of the model.
func (c *Classifier) askModel(ctx context.Context, k cacheKey, in *Input) modelResult {
	patience := c.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	if patience <= 0 || ctx.Err() != nil {
		return modelResult{reason: llm.ReasonTimeout}
	}
	own := *in // the call may outlive this function, and the caller's slice
	own.History = slices.Clone(latestTurns(in.History))
	f, known := c.calls.joinOrStart(k,
		func() (contract.Classification, bool) { return c.cache.get(k) },
		func(callCtx context.Context, f *inFlightCall) modelResult {
			return c.runCall(telemetry.WithSpanOf(callCtx, ctx), k, f, &own) // the trace of the first caller
		})
	if f == nil {
		return known
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.result
	case <-timer.C:
	case <-ctx.Done():
	}
	select {
	case <-f.done: // both were ready
		return f.result
	default:
		return modelResult{reason: llm.ReasonTimeout, calls: f.callsSoFar(llm.ReasonTimeout, noReplyWithin(patience), c.cfg.Now())}
	}
}

func noReplyWithin(d time.Duration) string {
	return "no reply within " + d.Round(time.Microsecond).String()
}

// runCall calls the model within the timeout, and caches its classification. A
// panic, here or in a library, must neither end the process nor cost the caller
// more than the reply.
func (c *Classifier) runCall(ctx context.Context, k cacheKey, f *inFlightCall, in *Input) (result modelResult) {
	defer func() {
		if v := recover(); v != nil {
			result = modelResult{reason: llm.ReasonUnavailable}
			c.cfg.Log.Error("panic while the model was asked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
		result.calls = f.callsSoFar(llm.ReasonUnavailable, "", c.cfg.Now())
	}()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	q := c.newQuestion(in)
	result.clf, result.reason = q.ask(ctx, f)
	if result.reason == "" {
		c.cache.put(k, result.clf)
	}
	return result
}

// modelQuestion is the model request for one input.
type modelQuestion struct {
	classifier *Classifier
	prompt     prompts.RouterData
	vocabulary closedVocabulary
	req        llm.Request
}

func (c *Classifier) newQuestion(in *Input) *modelQuestion {
	agents := c.shortlistAgents(in)
	q := &modelQuestion{
		classifier: c,
		prompt:     prompts.RouterData{Agents: promptAgents(agents, c.cfg.MaskText), Prompt: in.Prompt, History: in.History, Locale: in.Locale},
		vocabulary: newVocabulary(in.Catalogue),
	}
	text := q.prompt.Render()
	q.req = llm.Request{
		Purpose: contract.PurposeClassify, System: text.System, User: text.User,
		Schema: replySchema(agents), MaxOutputTokens: c.cfg.MaxOutputTokens,
	}
	return q
}

// ask calls the model, and once more if that can help: with a larger token
// limit if the reply was cut off, or with a repair prompt if it was invalid.
func (q *modelQuestion) ask(ctx context.Context, f *inFlightCall) (contract.Classification, string) {
	first := q.callOnce(ctx, f)
	if ctx.Err() != nil {
		return first.clf, first.reason
	}
	again := q.req
	switch first.reason {
	case llm.ReasonMaxTokens:
		again.Purpose = contract.PurposeMoreTokens
		again.MaxOutputTokens *= retryTokenFactor
	case llm.ReasonInvalidJSON, llm.ReasonInvalidValue:
		text := prompts.RenderRepair(&q.prompt, first.reply, first.detail)
		again.Purpose, again.System, again.User = contract.PurposeRepair, text.System, text.User
	default:
		return first.clf, first.reason
	}
	q.req = again
	second := q.callOnce(ctx, f)
	return second.clf, second.reason
}

// callOutcome is the outcome of one call.
type callOutcome struct {
	clf    contract.Classification // valid if reason is ""
	reason string
	detail string
	reply  string // excerpt
}

// callOnce makes one call and records it.
func (q *modelQuestion) callOnce(ctx context.Context, f *inFlightCall) callOutcome {
	f.beginCall(q.req.Purpose, q.classifier.cfg.Now())
	req := q.req // copy: the Model must not change the next request
	reply, err := q.classifier.cfg.Model.Generate(ctx, &req)
	call := contract.ModelCall{Outcome: contract.OutcomeOK}
	var o callOutcome
	switch {
	case err != nil:
		o.reason, o.detail = llm.ReasonOf(err), q.classifier.errorDetail(err)
	case reply == nil:
		o.reason = llm.ReasonEmpty
	default:
		o = q.readReply(reply)
		call.Tokens, call.Reply = reply.Tokens, o.reply
	}
	if o.reason != "" {
		call.Outcome, call.Detail = o.reason, o.detail
	}
	f.endCall(&call, q.classifier.cfg.Now())
	return o
}

// readReply parses a reply. A truncated reply that parses is complete, because
// some models append white space until the limit.
func (q *modelQuestion) readReply(reply *llm.Reply) callOutcome {
	o := callOutcome{reply: replyExcerpt(reply.Text)}
	clf, flaw := parseReply(reply.Text, q.vocabulary)
	switch {
	case flaw == nil:
		addModelOrigins(&clf)
		o.clf = clf
	case reply.Truncated:
		o.reason, o.detail = llm.ReasonMaxTokens, fmt.Sprintf("cut off at %d tokens", q.req.MaxOutputTokens)
	case strings.TrimSpace(reply.Text) == "":
		o.reason = llm.ReasonEmpty
	default:
		o.reason, o.detail = flaw.reason, flaw.detail
	}
	return o
}

// errorDetail returns the part of an error that may be shown. Only details of
// package llm are known to contain no secrets.
func (c *Classifier) errorDetail(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return sanitizeLine(e.Detail, maxDetail)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return noReplyWithin(c.cfg.Timeout)
	}
	return ""
}

// replyExcerpt returns the start of a reply as a copy, so that a large reply is
// not kept alive.
func replyExcerpt(reply string) string {
	shown := strings.Clone(truncateBytes(reply, contract.MaxReplyExcerpt))
	return truncateBytes(strings.ToValidUTF8(shown, string(utf8.RuneError)), contract.MaxReplyExcerpt) // replacement may have grown it
}

// truncateBytes truncates text to at most the given bytes, at a character
// border.
func truncateBytes(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	end := bytes
	for end > bytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// modelUse summarizes the calls of one classification.
func (c *Classifier) modelUse(calls []contract.ModelCall) *contract.ModelUse {
	u := &contract.ModelUse{
		Provider: c.cfg.Model.Provider(), Model: c.cfg.Model.Model(), PromptVersion: prompts.RouterVersion,
		Calls: append([]contract.ModelCall{}, calls...),
	}
	for i := range calls {
		u.Tokens.Add(calls[i].Tokens)
	}
	return u
}
