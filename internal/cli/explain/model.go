package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/session"
)

// maxReplyWidth bounds how much of a model's reply is printed, in columns.
const maxReplyWidth = 240

// writeModel writes which model was used with which prompt, and the outcome of each call:
//
//	model       gemini gemini-3.5-flash-lite, prompt router/1, 1052 in, 62 out
//	calls       1  classify  llm_invalid_value  412 ms · 512 in, 20 out
//	               ✗ intent: "poetry" is not one of code_review, …
//	               replied {"intent":"poetry", …
//	            2  repair    ok                 380 ms · 540 in, 42 out
//	               called again, with the mistake
//	               replied {"intent":"code_review", …
func (p decisionPrinter) writeModel(label string, use *contract.ModelUse) {
	if use == nil {
		return
	}
	parts := []string{use.Provider + " " + use.Model, "prompt " + use.PromptVersion}
	if t := formatTokens(use.Tokens); t != "" {
		parts = append(parts, t)
	}
	p.WriteList(label, parts, ", ", terminal.Plain)
	rows := make([]terminal.Row, len(use.Calls))
	for i := range use.Calls {
		rows[i] = newCallRow(i+1, &use.Calls[i])
	}
	if len(rows) > 0 {
		p.WriteTable("calls", rows)
	}
}

func newCallRow(number int, c *contract.ModelCall) terminal.Row {
	look := terminal.Yellow
	if c.Outcome == contract.OutcomeOK {
		look = terminal.Green
	}
	cost := formatMillis(c.LatencyMS)
	if t := formatTokens(c.Tokens); t != "" {
		cost += " · " + t
	}
	r := terminal.Row{Cells: []terminal.Cell{
		{Text: strconv.Itoa(number), Style: terminal.Dim},
		{Text: strings.ReplaceAll(string(c.Purpose), "_", " ")},
		{Text: c.Outcome, Style: look},
		{Text: cost, Style: terminal.Dim},
	}}
	if why := formatPurpose(c.Purpose); why != "" {
		r.Below = append(r.Below, terminal.Cell{Text: why, Style: terminal.Dim})
	}
	if c.Detail != "" {
		r.Below = append(r.Below, terminal.Cell{Text: "✗ " + c.Detail, Style: terminal.Yellow})
	}
	// The answer of policy A is printed as the answer.
	if c.Reply != "" && (c.Purpose != contract.PurposeAnswer || c.Outcome != contract.OutcomeOK) {
		r.Below = append(r.Below, terminal.Cell{Text: "replied " + terminal.Truncate(strings.TrimSpace(terminal.OneLine(c.Reply)), maxReplyWidth), Style: terminal.Dim})
	}
	return r
}

// formatPurpose explains why a model was called again.
func formatPurpose(purpose contract.CallPurpose) string {
	switch purpose {
	case contract.PurposeRepair:
		return "called again, with the mistake"
	case contract.PurposeMoreTokens:
		return "called again, with a larger limit for the reply"
	case contract.PurposeClassify, contract.PurposeAnswer:
	}
	return ""
}

// formatTokens returns the token counts, or "" if they are unknown.
func formatTokens(t contract.Tokens) string {
	if t == (contract.Tokens{}) {
		return ""
	}
	text := fmt.Sprintf("%d in, %d out", t.Input, t.Output)
	if t.Thinking > 0 {
		text += fmt.Sprintf(" (%d of them thinking)", t.Thinking)
	}
	return text
}

// formatClassification explains an unusual classification, and returns "" otherwise.
func formatClassification(c *contract.Classification) string {
	text := formatReason(c.Reason)
	switch {
	case text == "" && c.Source == contract.SourceCache:
		return "the model classified the same request before"
	case c.Source == contract.SourceLexical && c.ModelUse != nil && text != "":
		return text + "; the lexical classifier was used instead"
	}
	return text
}

// formatReason explains why a classifier did not answer, and what an operator can do. It
// returns "" for an unknown reason.
func formatReason(reason string) string {
	switch reason {
	case llm.ReasonTimeout:
		return "the model did not reply in time"
	case llm.ReasonUnavailable:
		return "the model's server could not be reached, or had an error"
	case llm.ReasonRateLimited:
		return "the model's server rejects requests for now: too many at a time, or the quota is used up"
	case llm.ReasonUnauthorized:
		return "the model's server does not accept the key: run caprouter doctor for details"
	case llm.ReasonRejected:
		return "the model's server rejected the request, for example because it has no such model: run caprouter doctor for details"
	case llm.ReasonBlocked:
		return "the content filters of the model blocked the request or the reply"
	case llm.ReasonEmpty:
		return "the reply of the model was empty"
	case llm.ReasonBadResponse:
		return "the response is not a model's reply: check llm.base_url"
	case llm.ReasonBreakerOpen:
		return "the circuit breaker of the model is open after repeated failures"
	case llm.ReasonBudget:
		return "the token budget of the hour is used up: raise limits.llm_tokens_per_hour"
	case llm.ReasonOverloaded:
		return "too many concurrent calls to the model"
	case llm.ReasonMaxTokens:
		return "the reply was cut off, even with the larger limit: raise llm.max_output_tokens"
	case llm.ReasonInvalidJSON:
		return "the reply was not the requested JSON, even after a second call"
	case llm.ReasonInvalidValue:
		return "the reply contained an invalid intent, domain or number, even after a second call"
	case llm.OutcomeCancelled:
		return "the caller disconnected before the reply"
	case llm.ReasonNotConfigured:
		return "no model is configured: set GEMINI_API_KEY, or llm in the configuration"
	case classifier.ReasonEmptyRegistry:
		return "the registry has no agents"
	case classifier.ReasonTooManyParts:
		return "the text contains more subtasks than allowed, and those with the highest confidence are used"
	case classifier.ReasonFollowUp:
		return "the text continues the previous request of the session"
	case session.ReasonClarified:
		return "the caller chose this intent"
	case session.ReasonNeedsInput:
		return "the agent of the previous turn asked for this input"
	case session.ReasonSession:
		return "the intent of the session is kept, as session.classify_trigger specifies"
	}
	return ""
}

func joinReason(reason, sentence string) string {
	if sentence == "" {
		return reason
	}
	return reason + ": " + sentence
}

// writeDegraded writes why no model answered under fallback policy A, or summarized the
// results.
func (p decisionPrinter) writeDegraded(d *contract.ResponseData) {
	label := "no summary"
	if d.Degraded {
		label = "degraded"
	}
	if d.DegradedReason != "" {
		p.WriteField(label, joinReason(d.DegradedReason, formatReason(d.DegradedReason)), terminal.Yellow)
	}
}

// writeClarification writes the question to the caller, its options and how to answer.
func (p decisionPrinter) writeClarification(resp *contract.Response, base string) {
	d := &resp.Data
	if d.Mode != contract.DataClarification {
		return
	}
	if d.Question != "" {
		p.WriteField("question", d.Question, terminal.Bold)
	}
	if d.Because != "" {
		p.WriteField("because", joinReason(d.Because, formatClarificationReason(d)), terminal.Yellow)
	}
	rows := make([]terminal.Row, len(d.Options))
	for i := range d.Options {
		rows[i] = terminal.Row{Cells: []terminal.Cell{{Text: d.Options[i].ID, Style: terminal.Cyan}, {Text: formatOption(&d.Options[i])}}}
	}
	if len(rows) > 0 {
		p.WriteTable("options", rows)
	}
	p.WriteField("choose", formatHowToChoose(resp, base), terminal.Plain)
}

func formatClarificationReason(d *contract.ResponseData) string {
	switch d.Because {
	case fallback.ReasonAmbiguous:
		other := func(o contract.ClarificationOption) bool { return o.Intent != d.Options[0].Intent }
		if len(d.Options) > 0 && !slices.ContainsFunc(d.Options, other) {
			return "several agents serve the intent, and the text names none of their domains"
		}
		return "several intents are about equally likely, and the text does not tell which is meant"
	case fallback.ReasonDivergent:
		return "it contains several requests, and this registry does not split requests"
	}
	return ""
}

func formatOption(o *contract.ClarificationOption) string {
	return cmp.Or(o.Label, FormatIntent(o.Intent, o.Domains))
}

// formatHowToChoose explains how to answer a question. base is the URL of the router, ""
// if it ran in this process and cannot be asked again.
func formatHowToChoose(resp *contract.Response, base string) string {
	switch {
	case resp.Data.DryRun:
		return "name the wanted option in the text, because a dry run stores no question"
	case base == "":
		return "name the wanted option in the text, or send the request to a running router (--url), which stores the question for --choose"
	}
	return "send the same request with --choose " + resp.RequestID + "=OPTION"
}

// writeCascade writes whether the lexical classifier made the model unnecessary.
func (p decisionPrinter) writeCascade(c *contract.Cascade) {
	if c != nil {
		p.WriteField("cascade", formatCascade(c), terminal.Plain)
	}
}

func formatCascade(c *contract.Cascade) string {
	lexical := fmt.Sprintf("the lexical classifier found %s with %.2f", c.Intent, c.Confidence)
	switch {
	case c.ModelSkipped && c.Accept != nil:
		return fmt.Sprintf("the model was not called: %s, at least %.2f", lexical, *c.Accept)
	case c.Accept == nil:
		lexical += ", and has no threshold: none is set, or there are too few examples to calibrate"
	default:
		lexical += fmt.Sprintf(", below %.2f", *c.Accept)
	}
	switch {
	case c.Agrees == nil:
		return "the model was called without success: " + lexical
	case *c.Agrees:
		return "the model was called: " + lexical + "; it agrees"
	}
	return "the model was called: " + lexical + "; it does not agree"
}
