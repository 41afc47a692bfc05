package router

import (
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// response is the answer as far as the plan knows it.
func (p *plan) response(j *job) *contract.Response {
	if p.omitted == nil {
		p.omitted = []contract.Omitted{}
	}
	return &contract.Response{
		RequestID: j.req.RequestID,
		TraceID:   j.req.TraceID,
		Decision:  &p.decision,
		Tasks:     []contract.TaskReport{},
		Omitted:   p.omitted,
		Data:      contract.ResponseData{Mode: contract.DataDispatch, DryRun: j.dryRun()},
	}
}

// aggregate turns what the agents returned into the answer, in subtask order.
func aggregate(resp *contract.Response, p *plan, runs []taskRun) {
	for i := range runs {
		t := &runs[i]
		resp.Tasks = append(resp.Tasks, t.report)
		if t.result == nil {
			continue
		}
		resp.Data.Results = append(resp.Data.Results, contract.AgentResult{
			AgentID:      t.report.AgentID,
			SubtaskTitle: t.report.SubtaskTitle,
			Status:       t.report.Status,
			Data:         t.result.Data,
			Explanations: t.result.Explanations,
		})
	}
	resp.Status = statusOf(runs, len(p.omitted))
	resp.Data.Answer = answerOf(resp.Data.Results)
}

// statusOf is the request's status: completed when everything asked was done,
// partial when some of it was, failed when nothing was.
func statusOf(runs []taskRun, omitted int) contract.Status {
	var done, some, cancelled int
	for i := range runs {
		switch runs[i].report.Status {
		case contract.TaskSuccess:
			done++
		case contract.TaskPartial:
			some++
		case contract.TaskCancelled:
			cancelled++
		case contract.TaskFailure, contract.TaskFailed:
		}
	}
	switch {
	case done == len(runs) && omitted == 0:
		return contract.StatusCompleted
	case done+some > 0:
		return contract.StatusPartial
	case cancelled == len(runs):
		return contract.StatusCancelled
	}
	return contract.StatusFailed
}

// answerOf is the one agent's text, or a section for each agent that gave one.
func answerOf(results []contract.AgentResult) string {
	var texts []string
	var last string
	for i := range results {
		res := &results[i]
		if text := (&contract.Result{Data: res.Data}).Text(); text != "" {
			texts = append(texts, "## "+res.SubtaskTitle+" ("+res.AgentID+")\n\n"+text)
			last = text
		}
	}
	if len(texts) < 2 {
		return last
	}
	return strings.Join(texts, "\n\n")
}

// titleOf is the first line of a prompt, shortened to a subtask title.
func titleOf(prompt string) string {
	title, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	title = strings.TrimSpace(title)
	n := 0
	for i := range title {
		if n == contract.MaxSubtaskTitle-1 {
			return title[:i] + "…"
		}
		n++
	}
	return title
}
