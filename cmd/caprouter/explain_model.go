package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/session"
)

// replyWidth is how many columns of a model's reply are shown.
const replyWidth = 240

// model is how a model was used: which one, with which prompt, and every call
// with what became of it.
//
//	model       gemini gemini-3.5-flash-lite, prompt router/1, 1052 in, 62 out
//	calls       1  classify  llm_invalid_value  412 ms · 512 in, 20 out
//	               ✗ intent: "poetry" is not one of code_review, …
//	               replied {"intent":"poetry", …
//	            2  repair    ok                 380 ms · 540 in, 42 out
//	               asked once more, with the mistake
//	               replied {"intent":"code_review", …
func (p *page) model(label string, use *contract.ModelUse) {
	if use == nil {
		return
	}
	parts := []string{use.Provider + " " + use.Model, "prompt " + use.PromptVersion}
	if t := tokens(use.Tokens); t != "" {
		parts = append(parts, t)
	}
	p.list(label, parts, ",", none)
	rows := make([]row, len(use.Calls))
	for i := range use.Calls {
		rows[i] = callRow(i+1, &use.Calls[i])
	}
	if len(rows) > 0 {
		p.table("calls", rows)
	}
}

func callRow(number int, c *contract.ModelCall) row {
	look := yellow
	if c.Outcome == contract.OutcomeOK {
		look = green
	}
	cost := millis(c.LatencyMS)
	if t := tokens(c.Tokens); t != "" {
		cost += " · " + t
	}
	r := row{cells: []cell{
		{text: strconv.Itoa(number), style: dim},
		{text: strings.ReplaceAll(string(c.Purpose), "_", " ")},
		{text: c.Outcome, style: look},
		{text: cost, style: dim},
	}}
	if why := purposeText(c.Purpose); why != "" {
		r.below = append(r.below, cell{text: why, style: dim})
	}
	if c.Detail != "" {
		r.below = append(r.below, cell{text: "✗ " + c.Detail, style: yellow})
	}
	// The answer of policy A is shown as the answer.
	if c.Reply != "" && (c.Purpose != contract.PurposeAnswer || c.Outcome != contract.OutcomeOK) {
		r.below = append(r.below, cell{text: "replied " + cut(strings.TrimSpace(oneLine(c.Reply)), replyWidth), style: dim})
	}
	return r
}

// purposeText says why a model was asked once more.
func purposeText(purpose contract.CallPurpose) string {
	switch purpose {
	case contract.PurposeRepair:
		return "asked once more, with the mistake"
	case contract.PurposeMoreTokens:
		return "asked once more, with room for a longer reply"
	case contract.PurposeClassify, contract.PurposeAnswer:
	}
	return ""
}

// tokens is what a model read and wrote, "" when nobody counted.
func tokens(t contract.Tokens) string {
	if t == (contract.Tokens{}) {
		return ""
	}
	text := fmt.Sprintf("%d in, %d out", t.Input, t.Output)
	if t.Thinking > 0 {
		text += fmt.Sprintf(" (%d of them thinking)", t.Thinking)
	}
	return text
}

// classifiedText says in a sentence what is special about how a request was
// classified, "" for nothing.
func classifiedText(c *contract.Classification) string {
	text := reasonText(c.Reason)
	switch {
	case text == "" && c.Source == contract.SourceCache:
		return "the model has classified the same request before, and is not asked again"
	case c.Source == contract.SourceLexical && c.ModelUse != nil && text != "":
		return text + "; the lexical classifier stands in"
	}
	return text
}

// reasonText explains why a model or the first choice of a classifier did not
// answer, and what an operator can do about it; "" for a reason it does not know.
func reasonText(reason string) string {
	switch reason {
	case llm.ReasonTimeout:
		return "the model did not reply in time"
	case llm.ReasonUnavailable:
		return "the model's server could not be reached, or had an error"
	case llm.ReasonRateLimited:
		return "the model's server takes no more requests for now: too many at a time, or the quota is used up"
	case llm.ReasonUnauthorized:
		return "the model's server does not accept the key: caprouter doctor says more"
	case llm.ReasonRejected:
		return "the model's server refused the request, as it does for a model it does not have: caprouter doctor says more"
	case llm.ReasonBlocked:
		return "the filters of the model's maker blocked the request or the reply"
	case llm.ReasonEmpty:
		return "the model replied with nothing"
	case llm.ReasonBadResponse:
		return "what came back is not a model's reply: check llm.base_url"
	case llm.ReasonBreakerOpen:
		return "the model has failed repeatedly and is left alone for a while"
	case llm.ReasonBudget:
		return "the tokens the model may use in an hour are used up: raise limits.llm_tokens_per_hour"
	case llm.ReasonOverloaded:
		return "too many calls to the model are under way"
	case llm.ReasonMaxTokens:
		return "the reply was cut off, with the larger budget as well: raise llm.max_output_tokens"
	case llm.ReasonInvalidJSON:
		return "the reply was not the JSON that was asked for, and stayed so when asked again"
	case llm.ReasonInvalidValue:
		return "the reply had an intent, a domain or a number that may not be, and still had when asked again"
	case llm.OutcomeCancelled:
		return "nobody waited for the reply any more"
	case llm.ReasonNotConfigured:
		return "there is no model: set GEMINI_API_KEY, or llm in the configuration"
	case classifier.ReasonEmptyRegistry:
		return "there is no agent to classify for"
	case classifier.ReasonTooManyParts:
		return "the text asks for more things than a request may have, and the surest of them count"
	case session.ReasonClarified:
		return "the caller has chosen this reading"
	case session.ReasonNeedsInput:
		return "the agent of the turn before has asked for this one"
	case session.ReasonSession:
		return "the session's reading holds, as session.classify_trigger says"
	}
	return ""
}

// because joins a reason and its sentence.
func because(reason, sentence string) string {
	if sentence == "" {
		return reason
	}
	return reason + ": " + sentence
}

// degraded is policy A that found no model to answer.
func (p *page) degraded(d *contract.ResponseData) {
	if d.Degraded {
		p.field("degraded", because(d.DegradedReason, reasonText(d.DegradedReason)), yellow)
	}
}

// clarification is the question to the caller, with its options and how to pick
// one of them.
func (p *page) clarification(resp *contract.Response, base string) {
	d := &resp.Data
	if d.Mode != contract.DataClarification {
		return
	}
	if d.Question != "" {
		p.field("question", d.Question, bold)
	}
	if d.Because != "" {
		p.field("because", because(d.Because, becauseText(d.Because)), yellow)
	}
	rows := make([]row, len(d.Options))
	for i := range d.Options {
		rows[i] = row{cells: []cell{{text: d.Options[i].ID, style: cyan}, {text: optionText(&d.Options[i])}}}
	}
	if len(rows) > 0 {
		p.table("options", rows)
	}
	p.field("choose", howToChoose(resp, base), none)
}

func becauseText(reason string) string {
	switch reason {
	case fallback.ReasonAmbiguous:
		return "two readings are as good, and different agents serve them"
	case fallback.ReasonDivergent:
		return "it asks for several things, and this registry does not split requests"
	}
	return ""
}

func optionText(o *contract.ClarificationOption) string {
	return cmp.Or(o.Label, reading(o.Intent, o.Domains))
}

// howToChoose says how to answer the question of the router at that URL, "" for
// the one in this process, which is gone with it.
func howToChoose(resp *contract.Response, base string) string {
	switch {
	case resp.Data.DryRun:
		return "say in the text which one is meant; a dry run remembers no question to answer"
	case base == "":
		return "say in the text which one is meant, or ask a running router (--url), which remembers its question and takes --choose"
	}
	return "send the same request with --choose " + resp.RequestID + "=OPTION"
}
