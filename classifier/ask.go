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
	"github.com/caprouter/caprouter/prompts"
)

// largerBudget is how many times more tokens a reply gets that was cut off.
const largerBudget = 4

// ask waits for what the model says to the input, with all who ask the same at
// this moment. The call outlives a caller who gives up: what it brings is good
// for the next one, and a caller's impatience is no fault of the model's.
func (c *Classifier) ask(ctx context.Context, k key, in *Input) answer {
	patience := c.timeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	if patience <= 0 || ctx.Err() != nil {
		return answer{reason: llm.ReasonTimeout}
	}
	own := *in // what is asked may outlive the call, and the caller's list with it
	own.History = slices.Clone(latest(in.History))
	f, known := c.flights.join(k,
		func() (contract.Classification, bool) { return c.cache.get(k) },
		func(ctx context.Context, f *flight) answer { return c.fly(ctx, k, f, &own) })
	if f == nil {
		return known
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.landed:
		return f.answer
	case <-timer.C:
	case <-ctx.Done():
	}
	select {
	case <-f.landed: // at the same moment
		return f.answer
	default:
		return answer{reason: llm.ReasonTimeout, calls: f.soFar(llm.ReasonTimeout, noReplyWithin(patience), c.now())}
	}
}

func noReplyWithin(d time.Duration) string {
	return "no reply within " + d.Round(time.Microsecond).String()
}

// fly asks the model within the budget of time, and keeps what it says. A panic
// is a mistake of ours or of a library's. It must not cost the process, nor the
// caller more than the model's word.
func (c *Classifier) fly(ctx context.Context, k key, f *flight, in *Input) (said answer) {
	defer func() {
		if v := recover(); v != nil {
			said = answer{reason: llm.ReasonUnavailable}
			c.log.Error("panic while the model was asked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
		said.calls = f.soFar(llm.ReasonUnavailable, "", c.now())
	}()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	q := c.question(in)
	said.clf, said.reason = q.put(ctx, f)
	if said.reason == "" {
		c.cache.put(k, said.clf)
	}
	return said
}

// question is what the model is asked about one input.
type question struct {
	c     *Classifier
	shown prompts.RouterData
	names vocabulary
	req   llm.Request
}

func (c *Classifier) question(in *Input) *question {
	agents := c.shown(in)
	q := &question{
		c:     c,
		shown: prompts.RouterData{Agents: promptAgents(agents), Prompt: in.Prompt, History: in.History, Locale: in.Locale},
		names: vocabularyOf(in.Catalogue),
	}
	text := q.shown.Render()
	q.req = llm.Request{
		Purpose: contract.PurposeClassify, System: text.System, User: text.User,
		Schema: replySchema(agents), MaxOutputTokens: c.maxOutputTokens,
	}
	return q
}

// put asks, and where the reply could be made good of asks once more: with a
// larger budget if it was cut off, else with what is wrong with it.
func (q *question) put(ctx context.Context, f *flight) (contract.Classification, string) {
	first := q.call(ctx, f)
	if ctx.Err() != nil {
		return first.clf, first.reason
	}
	again := q.req
	switch first.reason {
	case llm.ReasonMaxTokens:
		again.Purpose = contract.PurposeMoreTokens
		again.MaxOutputTokens *= largerBudget
	case llm.ReasonInvalidJSON, llm.ReasonInvalidValue:
		text := prompts.RenderRepair(&q.shown, first.reply, first.detail)
		again.Purpose, again.System, again.User = contract.PurposeRepair, text.System, text.User
	default:
		return first.clf, first.reason
	}
	q.req = again
	second := q.call(ctx, f)
	return second.clf, second.reason
}

// outcome is what came of one call.
type outcome struct {
	clf    contract.Classification // where reason is ""
	reason string
	detail string
	reply  string // its beginning
}

// call makes one call and notes it.
func (q *question) call(ctx context.Context, f *flight) outcome {
	f.begin(q.req.Purpose, q.c.now())
	req := q.req // a Model must not change what the next call is made of
	reply, err := q.c.model.Generate(ctx, &req)
	call := contract.ModelCall{Outcome: contract.OutcomeOK}
	var o outcome
	switch {
	case err != nil:
		o.reason, o.detail = llm.ReasonOf(err), q.c.detailOf(err)
	case reply == nil:
		o.reason = llm.ReasonEmpty
	default:
		o = q.judge(reply)
		call.Tokens, call.Reply = reply.Tokens, o.reply
	}
	if o.reason != "" {
		call.Outcome, call.Detail = o.reason, o.detail
	}
	f.end(&call, q.c.now())
	return o
}

// judge reads a reply. One that was cut off behind its last brace is whole: some
// models go on with white space until they are stopped.
func (q *question) judge(reply *llm.Reply) outcome {
	o := outcome{reply: beginning(reply.Text)}
	clf, flaw := parseReply(reply.Text, q.names)
	switch {
	case flaw == nil:
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

// detailOf is what may be shown of an error: only package llm's own words are
// known to hold no secret.
func (c *Classifier) detailOf(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return onOneLine(e.Detail, maxDetail)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return noReplyWithin(c.timeout)
	}
	return ""
}

// beginning is as much of a reply as is shown, in memory of its own: the rest
// may be a mebibyte.
func beginning(reply string) string {
	shown := strings.Clone(atMost(reply, contract.MaxReplyExcerpt))
	return atMost(strings.ToValidUTF8(shown, string(utf8.RuneError)), contract.MaxReplyExcerpt) // which may have grown
}

// atMost cuts a text at so many bytes, or before the character that stands there.
func atMost(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	end := bytes
	for end > bytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// use makes the account of the calls that one classification took.
func (c *Classifier) use(calls []contract.ModelCall) *contract.ModelUse {
	u := &contract.ModelUse{
		Provider: c.model.Provider(), Model: c.model.Model(), PromptVersion: prompts.RouterVersion,
		Calls: append([]contract.ModelCall{}, calls...),
	}
	for i := range calls {
		u.Tokens.Add(calls[i].Tokens)
	}
	return u
}
