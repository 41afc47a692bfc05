package router

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/prompts"
)

// maxSummaryTokens limits the length of a summary.
const maxSummaryTokens = 1000

// summarizeResults replaces the answer, which joins the texts of several agents, by a
// summary of the model, if the router is configured so. The model gets masked texts. If it
// gives none, the answer stays, and the response contains the reason. The results of the
// agents stay in any case.
func (r *Router) summarizeResults(ctx context.Context, run *requestRun, resp *contract.Response) {
	if !r.needsSummary(resp) {
		return
	}
	if err := ctx.Err(); err != nil {
		resp.Data.DegradedReason = modeltext.FailureReason(err)
		return
	}
	results := textsOf(resp.Data.Results, run.Masking.MaskText)
	defer run.timings.EndStage("summarize")
	ctx, span := telemetry.StartSpan(ctx, "summarize")
	defer span.End()
	answer := r.askForSummary(ctx, run, &prompts.SummarizeData{
		Prompt: run.Prompt, Results: results, Omitted: titlesWithoutText(resp, run.Masking.MaskText), MaxTokens: maxSummaryTokens,
		Language: fallback.LanguageTag(run.languageSource()),
	})
	span.SetString(telemetry.AttrReason, answer.Reason)
	resp.Data.AnsweredBy, resp.Data.DegradedReason = answer.Use, answer.Reason
	if answer.Reason == "" {
		resp.Data.Answer = answer.Text
	}
}

// needsSummary reports whether the answer joins the texts of several agents, and the router is
// configured to summarize them.
func (r *Router) needsSummary(resp *contract.Response) bool {
	unmasked := func(text string) string { return text }
	return r.cfg.SummarizeResults && len(textsOf(resp.Data.Results, unmasked)) > 1
}

// askForSummary calls the model within the caller's limit of answers.
func (r *Router) askForSummary(ctx context.Context, run *requestRun, data *prompts.SummarizeData) modeltext.Answer {
	if r.cfg.Model == nil {
		return modeltext.Answer{Reason: llm.ReasonNotConfigured}
	}
	if _, ok := r.cfg.Answers.Take(run.Caller); !ok {
		return modeltext.Answer{Reason: fallback.ReasonLimited}
	}
	return modeltext.Ask(ctx, r.cfg.Model, &modeltext.Question{
		Purpose: contract.PurposeSummarize, PromptVersion: prompts.SummarizeVersion, Prompt: data.Render(), MaxTokens: data.MaxTokens,
		Restore: func(text string) string { return run.Masking.RestoreText(text, nil) }, Now: r.cfg.Now,
	})
}

// textsOf returns the masked texts of the results that have one.
func textsOf(results []contract.AgentResult, mask func(string) string) []prompts.AgentResult {
	var texts []prompts.AgentResult
	for i := range results {
		res := &results[i]
		if text := (&contract.Result{Data: res.Data}).Text(); text != "" {
			texts = append(texts, prompts.AgentResult{Title: mask(res.SubtaskTitle), Agent: res.AgentID, Status: string(res.Status), Text: mask(text)})
		}
	}
	return texts
}

// titlesWithoutText returns the masked titles of the subtasks that no agent got, and of
// those that failed.
func titlesWithoutText(resp *contract.Response, mask func(string) string) []string {
	var titles []string
	for i := range resp.Omitted {
		titles = append(titles, mask(resp.Omitted[i].Title))
	}
	for i := range resp.Tasks {
		if resp.Tasks[i].Error != nil {
			titles = append(titles, mask(resp.Tasks[i].SubtaskTitle))
		}
	}
	return titles
}
