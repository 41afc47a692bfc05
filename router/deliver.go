package router

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/run"
)

// taskRun is what became of one part.
type taskRun struct {
	report    contract.TaskReport
	result    *contract.Result // nil when no agent gave one
	uncertain bool             // the agent may have done it
}

// deliver gives every part to its agent, in parallel, and waits for all.
func (r *Router) deliver(ctx context.Context, j *job, p *plan) []taskRun {
	runs := make([]taskRun, len(p.parts))
	inputs := newInputs(j)
	for range p.parts { // each part is at work by itself
		j.place.take(ctx)
	}
	j.place.give()
	defer j.place.take(ctx)
	run.Each(ctx, len(p.parts), len(p.parts), func(ctx context.Context, i int) {
		defer j.place.give()
		d := &delivery{router: r, job: j, index: i, part: &p.parts[i], inputs: inputs}
		runs[i] = d.run(ctx)
		r.tellEvent(j, &contract.Event{Type: contract.EventTaskDone, Task: &runs[i].report})
	})
	return runs
}

// delivery is one part on its way to an agent.
type delivery struct {
	router *Router
	job    *job
	index  int // of the part in the plan
	part   *part
	inputs *inputs

	current taskRun
	failed  []contract.FailedTry // before the current one
	tried   []string             // agents that were given the part
	closed  []string             // … and will not be given it again
	times   int                  // it went out
	went    bool                 // … with the latest attempt
}

// run tries the part's agents in turn until one delivers. An agent that may have
// done the work is the last to be tried: work is never given out twice (each
// agent gets a task of its own, with its own id and token).
func (d *delivery) run(ctx context.Context) taskRun {
	if d.recall(ctx) {
		return d.current
	}
	if d.part.down != nil {
		return d.router.notCalled(d.part)
	}
	for round := 0; !d.round(ctx) && d.wait(ctx, round); {
		round++
	}
	if d.current.report.TaskID == "" { // all have left the registry since they were chosen
		return d.router.failedPart(d.part, contract.TaskAgentUnavailable, "the agents that were chosen are not registered any more")
	}
	return d.current
}

// round gives the part to each agent that may still have it, and reports whether
// the part ends with what came of it.
func (d *delivery) round(ctx context.Context) bool {
	for i, agent := range d.part.agents {
		if slices.Contains(d.closed, agent.ID) {
			continue
		}
		if d.attempt(ctx, agent, d.task(ctx, agent), len(d.part.agents)-1-i, d.given) {
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
		Agent: agent, Caller: d.job.caller, Task: task, Others: others,
		Commit: func(ctx context.Context) error {
			if d.job.tracked != nil && r.stopping.Load() {
				return errHandedBack
			}
			err := put(ctx, agent, &task)
			w.recorded = err == nil
			d.went = w.recorded
			return err
		},
		Await: func(ctx context.Context) dispatch.Outcome { return d.await(ctx, w, agent) },
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
	d.current.uncertain = out.Uncertain
	d.current.report.SubtaskTitle = d.part.title // as the decision has it: masked
	d.current.report.FailedOver = d.failed
}

// note keeps a try in vain. That an agent was not given the part is said once,
// however often it was offered.
func (d *delivery) note(try contract.FailedTry) {
	known := slices.ContainsFunc(d.failed, func(f contract.FailedTry) bool {
		return try.Attempts == 0 && f.Attempts == 0 && f.AgentID == try.AgentID
	})
	if !known && len(d.failed) < maxFailed {
		d.failed = append(d.failed, try)
	}
}

// ends reports whether nobody else may be given the part.
func (d *delivery) ends() bool { return delivered(&d.current) || d.current.uncertain }

// task is the part as the agent gets it.
func (d *delivery) task(ctx context.Context, agent *contract.RegistryEntry) contract.Task {
	task := d.router.newTask(ctx, d.job, d.part, d.inputs.of(agent))
	task.SubtaskTitle = titleOf(d.job.masking.Restore(d.part.title, agent.Restore))
	return task
}

func (r *Router) newTask(ctx context.Context, j *job, pt *part, inputs map[string]json.RawMessage) contract.Task {
	deadline, _ := ctx.Deadline() // a request always has one
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

// tooLate reports the parts of a plan that was not on record in time: nothing of it
// was given out.
func (r *Router) tooLate(p *plan) []taskRun {
	runs := make([]taskRun, len(p.parts))
	for i := range p.parts {
		runs[i] = r.failedPart(&p.parts[i], contract.TaskDeadlineExceeded, "the deadline passed before the decision was on record")
	}
	return runs
}

// failedPart reports a part that was given to nobody.
func (r *Router) failedPart(pt *part, code contract.TaskCode, detail string) taskRun {
	agentID := pt.gone
	switch {
	case pt.down != nil:
		agentID = pt.down.AgentID
	case len(pt.agents) > 0:
		agentID = pt.agents[0].ID
	}
	return taskRun{report: contract.TaskReport{
		TaskID: r.cfg.NewID(), AgentID: agentID, SubtaskTitle: pt.title, Status: contract.TaskFailed,
		Error: &contract.TaskError{Code: code, Detail: detail},
	}}
}

// notCalled reports a part whose agents are all known to be down.
func (r *Router) notCalled(pt *part) taskRun {
	detail := "not called"
	for _, g := range pt.down.Gates {
		detail = "not called: " + g.Reason
	}
	return r.failedPart(pt, contract.TaskAgentUnavailable, detail)
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
