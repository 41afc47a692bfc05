package router

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/router/plan"
)

// deliver gives every part to its agent, in parallel, and waits for all.
func (r *Router) deliver(ctx context.Context, j *job, p *plan.Plan) []plan.Outcome {
	runs := make([]plan.Outcome, len(p.Parts))
	inputs := newInputs(j)
	for range p.Parts { // each part is at work by itself
		j.place.take(ctx)
	}
	j.place.give()
	defer j.place.take(ctx)
	run.ForEach(ctx, len(p.Parts), len(p.Parts), func(ctx context.Context, i int) {
		defer j.place.give()
		d := &delivery{router: r, job: j, index: i, part: &p.Parts[i], inputs: inputs}
		runs[i] = d.run(ctx)
		r.tellEvent(j, &contract.Event{Type: contract.EventTaskDone, Task: &runs[i].Report})
	})
	return runs
}

// delivery is one part on its way to an agent.
type delivery struct {
	router *Router
	job    *job
	index  int // of the part in the plan
	part   *plan.Part
	inputs *inputs

	current   plan.Outcome
	uncertain bool                     // the agent of current may have executed the part
	failed    []contract.FailedAttempt // before the current one
	tried     []string                 // agents that were given the part
	closed    []string                 // … and will not be given it again
	times     int                      // it went out
	went      bool                     // … with the latest attempt
}

// run tries the part's agents in turn until one delivers. An agent that may have
// done the work is the last to be tried: work is never given out twice (each
// agent gets a task of its own, with its own id and token).
func (d *delivery) run(ctx context.Context) plan.Outcome {
	if d.recall(ctx) {
		return d.current
	}
	if d.part.Down != nil {
		return d.router.notCalled(d.part)
	}
	for round := 0; !d.round(ctx) && d.wait(ctx, round); {
		round++
	}
	if d.current.Report.TaskID == "" { // all have left the registry since they were chosen
		return d.router.failedPart(d.part, contract.TaskAgentUnavailable, "the agents that were chosen are not registered any more")
	}
	return d.current
}

// round gives the part to each agent that may still have it, and reports whether
// the part ends with what came of it.
func (d *delivery) round(ctx context.Context) bool {
	for i, agent := range d.part.Agents {
		if slices.Contains(d.closed, agent.ID) {
			continue
		}
		if d.attempt(ctx, agent, d.task(ctx, agent), len(d.part.Agents)-1-i, d.given) {
			return true
		}
	}
	return false
}

// attempt gives the task to the agent and reports whether the part ends with what
// came of it. put is how the record is told that the task goes out.
func (d *delivery) attempt(ctx context.Context, agent *contract.RegistryEntry, task contract.Task, others int, put putting) bool {
	r := d.router
	w := r.waiting.expect(task.TaskID, agent.ID, d.job)
	defer r.waiting.forget(w)
	d.went = false
	out := r.dispatcher.Send(ctx, dispatch.Call{
		Agent: agent, Caller: d.job.caller, Task: task, Standbys: others,
		BeforeSend: func(ctx context.Context) error {
			if d.job.tracked != nil && r.stopping.Load() {
				return errHandedBack
			}
			err := put(ctx, agent, &task)
			w.recorded = err == nil
			d.went = w.recorded
			return err
		},
		AwaitResult: func(ctx context.Context) dispatch.Outcome { return d.await(ctx, w, agent) },
	})
	return d.settle(ctx, w, &task, agent.ID, out)
}

// settle books what came of a task, and whether the part ends with it.
func (d *delivery) settle(ctx context.Context, w *waiter, task *contract.Task, agentID string, out dispatch.Outcome) bool {
	d.book(task, agentID, d.finished(ctx, w, out))
	return d.ends() || ctx.Err() != nil
}

// book makes what came of a task the part's current one.
func (d *delivery) book(task *contract.Task, agentID string, out dispatch.Outcome) {
	if len(d.tried) > 0 {
		d.note(failedTry(&d.current))
	}
	d.tried = append(d.tried, agentID)
	if out.Err == nil || out.Err.Code != contract.TaskAgentUnavailable || out.Health == dispatch.HealthGood {
		d.closed = append(d.closed, agentID) // it has said its word
	}
	d.current = newTaskRun(task, agentID, out)
	d.uncertain = out.MayHaveExecuted
	d.current.Report.SubtaskTitle = d.part.Title // as the decision has it: masked
	d.current.Report.FailedOver = d.failed
}

// note keeps a try in vain. That an agent was not given the part is said once,
// however often it was offered.
func (d *delivery) note(try contract.FailedAttempt) {
	known := slices.ContainsFunc(d.failed, func(f contract.FailedAttempt) bool {
		return try.Attempts == 0 && f.Attempts == 0 && f.AgentID == try.AgentID
	})
	if !known && len(d.failed) < maxFailed {
		d.failed = append(d.failed, try)
	}
}

// ends reports whether nobody else may be given the part.
func (d *delivery) ends() bool { return delivered(&d.current) || d.uncertain }

// task is the part as the agent gets it.
func (d *delivery) task(ctx context.Context, agent *contract.RegistryEntry) contract.Task {
	task := d.router.newTask(ctx, d.job, d.part, d.inputs.of(agent))
	task.SubtaskTitle = contract.SubtaskTitle(d.job.masking.RestoreText(d.part.Title, agent.Restore))
	return task
}

func (r *Router) newTask(ctx context.Context, j *job, pt *plan.Part, inputs map[string]json.RawMessage) contract.Task {
	deadline, _ := ctx.Deadline() // a request always has one
	return contract.Task{
		TaskID:       r.cfg.NewID(),
		RequestID:    j.req.RequestID,
		TraceID:      j.req.TraceID,
		Intent:       pt.Intent,
		Domains:      pt.Domains,
		SubtaskTitle: pt.Title,
		Inputs:       inputs,
		Deadline:     deadline.UTC(),
		Attempt:      1,
	}
}

// tooLate reports the parts of a plan that was not on record in time: nothing of it
// was given out.
func (r *Router) tooLate(p *plan.Plan) []plan.Outcome {
	runs := make([]plan.Outcome, len(p.Parts))
	for i := range p.Parts {
		runs[i] = r.failedPart(&p.Parts[i], contract.TaskDeadlineExceeded, "the deadline passed before the decision was on record")
	}
	return runs
}

// failedPart reports a part that was given to nobody.
func (r *Router) failedPart(pt *plan.Part, code contract.TaskCode, detail string) plan.Outcome {
	agentID := pt.ChosenID
	switch {
	case pt.Down != nil:
		agentID = pt.Down.AgentID
	case len(pt.Agents) > 0:
		agentID = pt.Agents[0].ID
	}
	return plan.Outcome{Report: contract.TaskReport{
		TaskID: r.cfg.NewID(), AgentID: agentID, SubtaskTitle: pt.Title, Status: contract.TaskFailed,
		Error: &contract.TaskError{Code: code, Detail: detail},
	}}
}

// notCalled reports a part whose agents are all known to be down.
func (r *Router) notCalled(pt *plan.Part) plan.Outcome {
	detail := "not called"
	for _, g := range pt.Down.Gates {
		detail = "not called: " + g.Reason
	}
	return r.failedPart(pt, contract.TaskAgentUnavailable, detail)
}

func newTaskRun(task *contract.Task, agentID string, out dispatch.Outcome) plan.Outcome {
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
	return plan.Outcome{Report: report, Result: out.Result}
}

// delivered reports whether the agent did what could be done. Its own failure
// is not that: a standby may succeed.
func delivered(t *plan.Outcome) bool {
	return t.Report.Status == contract.TaskSuccess || t.Report.Status == contract.TaskPartial
}

// failedTry is what stays of a try when another agent takes over: the reason,
// and the agent's own words where it gave any.
func failedTry(t *plan.Outcome) contract.FailedAttempt {
	try := contract.FailedAttempt{
		TaskID: t.Report.TaskID, AgentID: t.Report.AgentID, Status: t.Report.Status,
		Attempts: t.Report.Attempts, LatencyMS: t.Report.LatencyMS, Error: t.Report.Error,
	}
	if t.Result != nil {
		try.Explanations = t.Result.Explanations
	}
	return try
}
