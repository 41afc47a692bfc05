package plan

import "github.com/caprouter/caprouter/contract"

// Outcome is the end of one part.
type Outcome struct {
	Report contract.TaskReport
	Result *contract.Result // nil if no agent returned one
}

// Response returns the part of the response that is known before execution.
func (p *Plan) Response(req *contract.Request) *contract.Response {
	if p.Omitted == nil {
		p.Omitted = []contract.Omitted{}
	}
	return &contract.Response{
		RequestID: req.RequestID,
		TraceID:   req.TraceID,
		Decision:  &p.Decision,
		Tasks:     []contract.TaskReport{},
		Omitted:   p.Omitted,
		Data:      contract.ResponseData{Mode: contract.DataDispatch, DryRun: req.Options.DryRun},
	}
}

// Aggregate adds the outcomes of the parts to the response, in subtask order.
func (p *Plan) Aggregate(resp *contract.Response, outcomes []Outcome) {
	for i := range outcomes {
		o := &outcomes[i]
		resp.Tasks = append(resp.Tasks, o.Report)
		if o.Result == nil {
			continue
		}
		resp.Data.Results = append(resp.Data.Results, contract.AgentResult{
			AgentID:      o.Report.AgentID,
			SubtaskTitle: o.Report.SubtaskTitle,
			Status:       o.Report.Status,
			Data:         o.Result.Data,
			Explanations: o.Result.Explanations,
		})
	}
	resp.Status = aggregateStatus(outcomes, len(p.Omitted))
	resp.Data.Answer = contract.AnswerText(resp.Data.Results)
}

// aggregateStatus returns completed if every subtask was executed, partial if some
// were, cancelled if all were cancelled, and failed otherwise.
func aggregateStatus(outcomes []Outcome, omitted int) contract.Status {
	var succeeded, partial, cancelled int
	for i := range outcomes {
		switch outcomes[i].Report.Status {
		case contract.TaskSuccess:
			succeeded++
		case contract.TaskPartial:
			partial++
		case contract.TaskCancelled:
			cancelled++
		case contract.TaskFailure, contract.TaskFailed:
		}
	}
	switch {
	case succeeded == len(outcomes) && omitted == 0:
		return contract.StatusCompleted
	case succeeded+partial > 0:
		return contract.StatusPartial
	case cancelled == len(outcomes):
		return contract.StatusCancelled
	}
	return contract.StatusFailed
}
