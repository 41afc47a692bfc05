package router

import (
	"context"
	"encoding/json"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/run"
)

// taskRun is what became of one part.
type taskRun struct {
	report contract.TaskReport
	result *contract.Result // nil when no agent gave one
}

// deliver gives every part to its agent, in parallel, and waits for all.
func (r *Router) deliver(ctx context.Context, j *job, p *plan) []taskRun {
	runs := make([]taskRun, len(p.parts))
	inputs := newInputs(j)
	run.Each(ctx, len(p.parts), len(p.parts), func(ctx context.Context, i int) {
		pt := &p.parts[i]
		if pt.down != nil {
			runs[i] = r.notCalled(pt)
			return
		}
		runs[i] = r.deliverPart(ctx, j, pt, inputs)
	})
	return runs
}

// deliverPart tries the part's agents in turn until one delivers. An agent that
// may have done the work is the last to be tried: work is never given out twice
// (each try is a new task with its own id and token).
func (r *Router) deliverPart(ctx context.Context, j *job, pt *part, in *inputs) taskRun {
	var current taskRun
	var failed []contract.FailedTry
	for i, agent := range pt.agents {
		if i > 0 {
			failed = append(failed, failedTry(&current))
		}
		task := r.newTask(ctx, j, pt, in.of(agent))
		task.SubtaskTitle = titleOf(j.masking.Restore(pt.title, agent.Restore))
		out := r.dispatcher.Send(ctx, dispatch.Call{Agent: agent, Caller: j.caller, Task: task, Others: len(pt.agents) - 1 - i})
		current = newTaskRun(&task, agent.ID, out)
		current.report.SubtaskTitle = pt.title // as the decision has it: masked
		if delivered(&current) || out.Uncertain || ctx.Err() != nil {
			break
		}
	}
	current.report.FailedOver = failed
	return current
}

func (r *Router) newTask(ctx context.Context, j *job, pt *part, inputs map[string]json.RawMessage) contract.Task {
	deadline, _ := ctx.Deadline() // Handle always sets one
	return contract.Task{
		TaskID:       r.cfg.NewID(),
		RequestID:    j.req.RequestID,
		TraceID:      j.req.TraceID,
		Intent:       pt.intent,
		Domains:      pt.domains,
		SubtaskTitle: pt.title,
		Inputs:       inputs,
		Deadline:     deadline.UTC(),
		Attempt:      1,
	}
}

// notCalled reports a part whose agents are all known to be down.
func (r *Router) notCalled(pt *part) taskRun {
	detail := "not called"
	for _, g := range pt.down.Gates {
		detail = "not called: " + g.Reason
	}
	return taskRun{report: contract.TaskReport{
		TaskID: r.cfg.NewID(), AgentID: pt.down.AgentID, SubtaskTitle: pt.title, Status: contract.TaskFailed,
		Error: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: detail},
	}}
}

func newTaskRun(task *contract.Task, agentID string, out dispatch.Outcome) taskRun {
	report := contract.TaskReport{
		TaskID: task.TaskID, AgentID: agentID, SubtaskTitle: task.SubtaskTitle,
		Attempts: out.Attempts, LatencyMS: millis(out.Latency), Error: out.Err,
	}
	switch {
	case out.Result != nil:
		report.Status = contract.TaskStatus(out.Result.Status)
	case out.Err != nil && out.Err.Code == contract.TaskWasCancelled:
		report.Status = contract.TaskCancelled
	default:
		report.Status = contract.TaskFailed
	}
	return taskRun{report: report, result: out.Result}
}

// delivered reports whether the agent did what could be done. Its own failure
// is not that: a standby may succeed.
func delivered(t *taskRun) bool {
	return t.report.Status == contract.TaskSuccess || t.report.Status == contract.TaskPartial
}

// failedTry is what stays of a try when another agent takes over: the reason,
// and the agent's own words where it gave any.
func failedTry(t *taskRun) contract.FailedTry {
	try := contract.FailedTry{
		TaskID: t.report.TaskID, AgentID: t.report.AgentID, Status: t.report.Status,
		Attempts: t.report.Attempts, LatencyMS: t.report.LatencyMS, Error: t.report.Error,
	}
	if t.result != nil {
		try.Explanations = t.result.Explanations
	}
	return try
}
