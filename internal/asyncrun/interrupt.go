package asyncrun

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/router/plan"
)

// interruption is why a request ends before all of its tasks have.
type interruption struct {
	status        contract.TaskStatus // of the tasks without an outcome
	sent, notSent contract.TaskError  // of the tasks that an agent has, and of the others
}

// interruptedResponse returns the response to a request that ends outside of the
// pipeline. It is built as at any other end: results that were delivered count.
func (r *Runner) interruptedResponse(rec *requests.Record, req *execution.Request, why *interruption) *contract.Response {
	if rec.Decision == nil || len(rec.Parts) == 0 {
		resp := rec.Snapshot()
		resp.Status = contract.StatusFailed
		if why.status == contract.TaskCancelled {
			resp.Status = contract.StatusCancelled
		}
		return resp
	}
	p := plan.Restore(rec)
	resp := p.Response(req.Request)
	outcomes := make([]plan.Outcome, len(p.Parts))
	for i := range p.Parts {
		report, result := rec.PartOutcome(i)
		switch {
		case report == nil:
			outcomes[i] = r.cfg.Executor.NotSent(&p.Parts[i], why.notSent.Code, why.notSent.Detail)
			outcomes[i].Report.Status = why.status
			continue
		case report.Status == contract.TaskRunning:
			unfinished := why.sent
			report.Status, report.Error = why.status, &unfinished
		case report.Error != nil && report.Error.Code == contract.TaskAgentUnavailable: // waits for another round
			unfinished := why.notSent
			report.Status, report.Error = why.status, &unfinished
		}
		outcomes[i] = plan.Outcome{Report: *report, Result: result}
	}
	p.Aggregate(resp, outcomes)
	if why.status == contract.TaskCancelled {
		r.pipeline.ExplainMissingSummary(resp)
	}
	return resp
}
