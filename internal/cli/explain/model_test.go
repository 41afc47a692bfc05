package explain

import (
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/session"
)

// someBase is the URL of the router.
const someBase = "http://127.0.0.1:8080"

// TestPrintResponse_Model is like TestPrintResponse, for the use of a model.
func TestPrintResponse_Model(t *testing.T) {
	tests := []struct {
		name string
		resp *contract.Response
		opts Options
	}{
		{"llm_ok", classified(llmOK()), Options{Prompt: "Please do a code review of this python module"}},
		{"llm_repaired", classified(llmRepaired()), Options{Prompt: "Please do a code review of this python module"}},
		{"llm_more_tokens", classified(llmMoreTokens()), Options{Prompt: "Please do a code review of this python module"}},
		{"llm_failed", classified(llmFailed()), Options{Prompt: "Please do a code review of this python module"}},
		{"llm_breaker_open", classified(llmBreakerOpen()), Options{Prompt: "Please do a code review of this python module"}},
		{"llm_narrow", classified(llmRepaired()), Options{Options: terminal.Options{Width: terminal.MinWidth}}},
		{"llm_hostile", classified(llmHostile()), Options{Prompt: "review"}},
		{"cache_hit", classified(cacheHit()), Options{Prompt: "Please do a code review of this python module"}},
		{"pinned", classified(pinned()), Options{Prompt: "Please do a code review of this python module"}},
		{"clarification", clarification(), Options{Prompt: "Optimize our Databricks costs", Base: someBase}},
		{"clarification_in_process", clarification(), Options{Prompt: "Optimize our Databricks costs"}},
		{"clarification_of_domain", domainClarification(), Options{Prompt: "Book a room", Base: someBase}},
		{"clarification_dry_run", divergentDryRun(), Options{Prompt: "Review this and what does it cost?", Base: someBase}},
		{"server_fallback", serverFallback(), Options{Prompt: "What is a left join?"}},
		{"server_fallback_dry_run", serverFallbackDryRun(), Options{Prompt: "What is a left join?"}},
		{"degraded", degraded(), Options{Prompt: "What is a left join?"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.opts.Width == 0 {
				tt.opts.Width = terminal.DefaultWidth
			}
			checkPage(t, tt.name, tt.resp, tt.opts)
		})
	}
}

// Every reason has a one-line text, and no two texts are equal.
func TestFormatReason_ExplainsEveryReason(t *testing.T) {
	known := slices.Concat(llm.Reasons(), []string{
		classifier.ReasonEmptyRegistry, classifier.ReasonTooManyParts, classifier.ReasonFollowUp,
		session.ReasonClarified, session.ReasonNeedsInput, session.ReasonSession,
	})
	seen := map[string]string{}
	for _, reason := range known {
		text := formatReason(reason)
		if text == "" || strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
			t.Errorf("%s: got %q, want a line without a full stop", reason, text)
		}
		if other := seen[text]; other != "" {
			t.Errorf("got the same text for %s and %s: %q", reason, other, text)
		}
		seen[text] = reason
	}
	for _, reason := range []string{"", "ok", "llm_something_new"} {
		if got := formatReason(reason); got != "" {
			t.Errorf("%q: got %q for an unknown reason, want nothing", reason, got)
		}
	}
	for _, reason := range []string{fallback.ReasonAmbiguous, fallback.ReasonDivergent} {
		if formatClarificationReason(&contract.ResponseData{Because: reason}) == "" {
			t.Errorf("%s: got no text for the reason of the question", reason)
		}
	}
}

func TestFormatClassification(t *testing.T) {
	asked := &contract.ModelUse{Provider: "gemini"}
	tests := []struct {
		name string
		clf  contract.Classification
		want string
	}{
		{"model", contract.Classification{Source: contract.SourceLLM, ModelUse: asked}, ""},
		{"lexical", contract.Classification{Source: contract.SourceLexical}, ""},
		{"cache", contract.Classification{Source: contract.SourceCache, ModelUse: asked}, "the model classified the same request before"},
		{"lexical after a failed call", contract.Classification{Source: contract.SourceLexical, ModelUse: asked, Reason: llm.ReasonTimeout}, "the model did not reply in time; the lexical classifier was used instead"},
		{"lexical with a reason", contract.Classification{Source: contract.SourceLexical, Reason: classifier.ReasonEmptyRegistry}, "the registry has no agents"},
		{"reason of a newer router", contract.Classification{Source: contract.SourceLexical, ModelUse: asked, Reason: "llm_new"}, ""},
	}
	for _, tt := range tests {
		if got := formatClassification(&tt.clf); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestFormatTokens(t *testing.T) {
	tests := []struct {
		tokens contract.Tokens
		want   string
	}{
		{contract.Tokens{}, ""},
		{contract.Tokens{Input: 512}, "512 in, 0 out"},
		{contract.Tokens{Input: 512, Output: 43, Thinking: 20}, "512 in, 43 out (20 of them thinking)"},
	}
	for _, tt := range tests {
		if got := formatTokens(tt.tokens); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.tokens, got, tt.want)
		}
	}
}

const (
	goodReply = `{"intent":"code_review","domains":["python"],"subtasks":[{"title":"Review the error handling","reason":"asked for"}],"confidence":0.93}`
	badReply  = "```json\n" + `{"intent":"poetry","domains":["python"],"subtasks":[],"confidence":0.93}` + "\n```"
)

// used returns the use of a model with these calls.
func used(calls ...contract.ModelCall) *contract.ModelUse {
	use := &contract.ModelUse{Provider: "gemini", Model: "gemini-3.5-flash-lite", PromptVersion: "router/1", Calls: calls}
	for i := range calls {
		use.Tokens.Add(calls[i].Tokens)
	}
	return use
}

func called(purpose contract.CallPurpose, outcome, detail, reply string, in, out int, ms float64) contract.ModelCall {
	return contract.ModelCall{
		Purpose: purpose, Outcome: outcome, Detail: detail, Reply: reply,
		Tokens: contract.Tokens{Input: in, Output: out}, LatencyMS: ms,
	}
}

// classified returns a response of quality_agent with this classification.
func classified(clf contract.Classification) *contract.Response {
	r := dryRun()
	clf.Intent, clf.Domains = "code_review", []string{"python"}
	d := decided(clf, candidate("quality_agent", contract.RoleChosen, "python"))
	d.TimingsMS = map[string]float64{"classify": clf.LatencyMS, "match": 0.012, "total": clf.LatencyMS + 0.1}
	r.Decision = d
	return r
}

func llmOK() contract.Classification {
	use := used(called(contract.PurposeClassify, contract.OutcomeOK, "", goodReply, 612, 58, 412.3))
	use.Calls[0].Tokens.Thinking, use.Tokens.Thinking = 20, 20
	return contract.Classification{
		Confidence: 0.93, Source: contract.SourceLLM, LatencyMS: 412.6, ModelUse: use,
		Subtasks: []contract.Subtask{{Title: "Review the error handling", Reason: "asked for"}},
	}
}

func llmRepaired() contract.Classification {
	return contract.Classification{Confidence: 0.93, Source: contract.SourceLLM, LatencyMS: 903.2, ModelUse: used(
		called(contract.PurposeClassify, llm.ReasonInvalidValue, `intent: "poetry" is not one of code_review, cost_analysis, unknown`, badReply, 612, 31, 455.1),
		called(contract.PurposeRepair, contract.OutcomeOK, "", goodReply, 701, 38, 447.8),
	)}
}

func llmMoreTokens() contract.Classification {
	return contract.Classification{Confidence: 0.93, Source: contract.SourceLLM, LatencyMS: 1903.2, ModelUse: used(
		called(contract.PurposeClassify, llm.ReasonMaxTokens, "cut off after 300 tokens", goodReply[:60], 612, 300, 955.1),
		called(contract.PurposeMoreTokens, contract.OutcomeOK, "", goodReply, 612, 412, 947.8),
	)}
}

func llmFailed() contract.Classification {
	return contract.Classification{
		Confidence: 1, Source: contract.SourceLexical, LatencyMS: 2000.9, Reason: llm.ReasonTimeout,
		DomainOrigins: []contract.DomainOrigin{{Domain: "python", Origin: contract.DomainNamed}},
		ModelUse:      used(called(contract.PurposeClassify, llm.ReasonTimeout, "no reply within 2s", "", 0, 0, 2000.1)),
	}
}

func llmBreakerOpen() contract.Classification {
	return contract.Classification{
		Confidence: 1, Source: contract.SourceLexical, LatencyMS: 0.9, Reason: llm.ReasonBreakerOpen,
		ModelUse: used(called(contract.PurposeClassify, llm.ReasonBreakerOpen, "", "", 0, 0, 0.02)),
	}
}

// llmHostile is a hostile classification with control characters.
func llmHostile() contract.Classification {
	use := used(called("steal\n", "\x1b[2Jno", "line one\r\nline two\x07", "\x1b[8m\u202e"+strings.Repeat("长 text\n", 200), -1, 0, 1))
	use.Model = "m\x1b[0m\n"
	return contract.Classification{Confidence: 1, Source: "weird\x07", Reason: "because\n", LatencyMS: 1, ModelUse: use}
}

func cacheHit() contract.Classification {
	return contract.Classification{Confidence: 0.93, Source: contract.SourceCache, LatencyMS: 0.012, ModelUse: used()}
}

func pinned() contract.Classification {
	return contract.Classification{Confidence: 1, Source: contract.SourcePinned, Reason: session.ReasonClarified, LatencyMS: 0.003}
}

func clarification() *contract.Response {
	clf := contract.Classification{
		Intent: "databricks_review", Domains: []string{"databricks"}, Confidence: 0.5, Source: contract.SourceLexical, LatencyMS: 0.05,
		Alternatives: []contract.IntentScore{{Intent: "cost_analysis", Confidence: 0.5}},
	}
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusClarify,
		Decision: decided(clf, ineligible(candidate("quality_agent", "", "databricks")), ineligible(candidate("billing_agent", "", "databricks"))),
		Data: contract.ResponseData{
			Mode: contract.DataClarification, Question: "The request can be read in several ways. Which one is meant?", Because: fallback.ReasonAmbiguous,
			Options: []contract.ClarificationOption{
				{ID: "1", Label: "databricks review (databricks)", Intent: "databricks_review", Domains: []string{"databricks"}},
				{ID: "2", Label: "cost analysis (databricks)", Intent: "cost_analysis", Domains: []string{"databricks"}},
			},
		},
	}
}

// domainClarification asks which of two agents with the same intent is meant.
func domainClarification() *contract.Response {
	r := clarification()
	r.Decision = decided(contract.Classification{
		Intent: "book_room", Domains: []string{contract.Unknown}, Confidence: 0.95, Source: contract.SourceLexical, LatencyMS: 0.05,
	})
	r.Data.Options = []contract.ClarificationOption{
		{ID: "1", Label: "book room (lisbon)", Intent: "book_room", Domains: []string{"lisbon"}},
		{ID: "2", Label: "book room (porto)", Intent: "book_room", Domains: []string{"porto"}},
	}
	return r
}

func divergentDryRun() *contract.Response {
	r := clarification()
	r.Data.DryRun, r.Data.Because = true, fallback.ReasonDivergent
	return r
}

func serverFallback() *contract.Response {
	used := used(called(contract.PurposeClassify, contract.OutcomeOK, "", `{"intent":"unknown","domains":["unknown"],"subtasks":[],"confidence":0.97}`, 607, 21, 391.1))
	policy := "A"
	d := decided(contract.Classification{
		Intent: contract.Unknown, Domains: []string{contract.Unknown}, Confidence: 0.97, Source: contract.SourceLLM, LatencyMS: 391.4, ModelUse: used,
	})
	d.FallbackUsed = &policy
	d.TimingsMS = map[string]float64{"classify": 391.4, "match": 0.004, "fallback": 812.5, "total": 1204.2}
	answer := *used
	answer.PromptVersion, answer.Tokens = "answer/1", contract.Tokens{Input: 174, Output: 68}
	answer.Calls = []contract.ModelCall{called(contract.PurposeAnswer, contract.OutcomeOK, "", "A left join keeps every row.", 174, 68, 812.1)}
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusCompleted, Decision: d,
		Data: contract.ResponseData{
			Mode: contract.DataServerFallback, Classification: &d.Classification, AnsweredBy: &answer, Unsupported: unsupported().Data.Unsupported,
			Answer: "No specialised agent is registered for this request. A direct and limited answer follows:\n\nA left join keeps every row.",
		},
	}
}

func serverFallbackDryRun() *contract.Response {
	r := serverFallback()
	r.Data.DryRun, r.Data.Answer, r.Data.AnsweredBy = true, "", nil
	delete(r.Decision.TimingsMS, "fallback")
	return r
}

// degraded is policy A without a model: its facts are those of policy B.
func degraded() *contract.Response {
	r := unsupported()
	policy := "A"
	r.Status, r.Decision.FallbackUsed = contract.StatusCompleted, &policy
	r.Data.Mode, r.Data.Degraded, r.Data.DegradedReason = contract.DataServerFallback, true, llm.ReasonNotConfigured
	r.Data.Answer = "No specialised agent is registered for this request. No language model is set up to answer it directly. Accepted intents: code_review."
	return r
}

func TestFormatCascade(t *testing.T) {
	enough, yes, no := 0.96, true, false
	for want, c := range map[string]contract.Cascade{
		"the model was not called: the lexical classifier found review with 0.98, at least 0.96":                                                                        {Intent: "review", Confidence: 0.98, Accept: &enough, ModelSkipped: true},
		"the model was called: the lexical classifier found review with 0.80, below 0.96; it agrees":                                                                    {Intent: "review", Confidence: 0.8, Accept: &enough, Agrees: &yes},
		"the model was called: the lexical classifier found unknown with 0.10, below 0.96; it does not agree":                                                           {Intent: "unknown", Confidence: 0.1, Accept: &enough, Agrees: &no},
		"the model was called without success: the lexical classifier found review with 0.80, below 0.96":                                                               {Intent: "review", Confidence: 0.8, Accept: &enough},
		"the model was called: the lexical classifier found review with 1.00, and has no threshold: none is set, or there are too few examples to calibrate; it agrees": {Intent: "review", Confidence: 1, Agrees: &yes},
	} {
		if got := formatCascade(&c); got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
	}
}
