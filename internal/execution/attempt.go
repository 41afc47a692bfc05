package execution

import (
	"context"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/router/plan"
)

// maxFailedAttempts bounds the failed attempts in the report of a task.
const maxFailedAttempts = 20

// partExecution executes one part of a plan. One goroutine owns it.
type partExecution struct {
	executor *Executor
	run      *Run
	index    int // of the part in the plan
	part     *plan.Part
	inputs   *taskInputs

	prepared preparedTask // until the part is sent for the first time

	current   plan.Outcome
	uncertain bool                     // the agent of current may have executed the part
	attempted bool                     // current is set
	failed    []contract.FailedAttempt // attempts before the current one
	excluded  []string                 // agents that do not get the part again
	sends     int                      // how often the part was sent
}

// attemptResult is the result of one attempt to send a part.
type attemptResult struct {
	ended    bool // the part has ended
	sent     bool // the task was recorded as sent
	outdated bool // the task was refused, because the agent's entry has changed
}

// executePart tries the agents of the part in turn, until one of them executes it or
// may have executed it.
func (p *partExecution) executePart(ctx context.Context) plan.Outcome {
	if p.resumeTasks(ctx) {
		return p.current
	}
	if p.part.Down != nil {
		return p.agentsDown()
	}
	for round := 0; ; round++ {
		if p.tryAgents(ctx) || !p.waitForNextRound(ctx, round) {
			break
		}
	}
	if !p.attempted {
		return p.executor.NotSent(p.part, contract.TaskAgentUnavailable, "the plan names no agent")
	}
	return p.current
}

// tryAgents sends the part to each agent that is not excluded, and reports whether
// the part has ended.
func (p *partExecution) tryAgents(ctx context.Context) (ended bool) {
	for i, id := range p.part.Agents {
		for !slices.Contains(p.excluded, id) {
			agent, refusal := p.run.Registry.Eligible(p.part, id)
			if agent == nil {
				p.skipAgent(id, refusal)
				break
			}
			attempt := p.attemptAgent(ctx, agent, p.takeTask(ctx, agent), len(p.part.Agents)-1-i, p.recordSent)
			if attempt.ended {
				return true
			}
			if !attempt.outdated {
				break
			}
		}
	}
	return false
}

// skipAgent records that the agent does not get the part, in this round or a later
// one.
func (p *partExecution) skipAgent(agentID string, refusal *contract.TaskError) {
	p.excluded = append(p.excluded, agentID)
	p.setOutcome(&contract.Task{TaskID: p.executor.newID()}, agentID, dispatch.Outcome{Err: refusal})
}

// recheckAgent returns why the agent may not be sent a task that was made with the
// entry, "" if it may, and whether the reason is another entry. A task that waited must
// not reach an address of the past, nor contain data that the current entry withholds.
func (p *partExecution) recheckAgent(entry *contract.RegistryEntry) (reason string, outdated bool) {
	current, refusal := p.run.Registry.Eligible(p.part, entry.ID)
	switch {
	case current == nil:
		return refusal.Detail, false
	case current == entry, // the common case
		current.Endpoint.Equal(&entry.Endpoint) && current.Origin == entry.Origin && slices.Equal(current.Restore, entry.Restore):
		return "", false
	}
	return "the registry entry of " + entry.ID + " has changed", true
}

// recordFunc records that a task is about to be sent.
type recordFunc = func(ctx context.Context, agent *contract.RegistryEntry, task *contract.Task, standbys int) error

// attemptAgent sends the task to the agent. standbys is the number of agents that can
// still take over.
func (p *partExecution) attemptAgent(
	ctx context.Context, agent *contract.RegistryEntry, prepared preparedTask, standbys int, record recordFunc,
) attemptResult {
	task := prepared.task
	pending := p.executor.callbacks.pending.add(p.newReport(agent, &task), p.run)
	defer p.executor.callbacks.pending.remove(pending)
	var sent, outdated, awaited bool
	call := p.newCall(agent, &task, standbys)
	call.Token, call.Divided, call.MaskText = prepared.token, p.part.Subtask != plan.WholeRequest, p.run.Request.Masking.MaskText
	call.Recheck = func() string {
		reason, changed := p.recheckAgent(agent)
		outdated = outdated || changed
		return reason
	}
	call.BeforeSend = func(ctx context.Context) error {
		err := record(ctx, agent, &task, standbys)
		sent = err == nil
		return err
	}
	call.AwaitResult = func(ctx context.Context) dispatch.Outcome {
		awaited = true
		if pullsTasks(agent) {
			return p.awaitPulled(ctx, pending, agent, standbys, p.executor.now())
		}
		return p.awaitCallback(ctx, pending, agent)
	}
	out := p.executor.dispatcher.Send(ctx, call)
	if sent && !out.Pending {
		out = p.run.Recorder.Finished(ctx, task.TaskID, out)
		if awaited {
			p.logFailure(ctx, task.TaskID, agent.ID, &out)
		}
	}
	if outdated && !sent && ctx.Err() == nil {
		return attemptResult{outdated: true} // the current entry gets the part at once
	}
	p.setOutcome(&task, agent.ID, out)
	return attemptResult{ended: p.hasEnded() || ctx.Err() != nil, sent: sent, outdated: outdated}
}

// recordSent records a new task.
func (p *partExecution) recordSent(ctx context.Context, agent *contract.RegistryEntry, task *contract.Task, standbys int) error {
	now := p.executor.now()
	stored := storedTask(p.index, agent, task, now)
	if pullsTasks(agent) { // from the stored record
		stored.Pull = pulltarget.NewPull(ctx, p.newCall(agent, task, standbys), now)
	}
	if err := p.run.Recorder.Sent(ctx, stored, stored.Pull != nil); err != nil {
		return err
	}
	p.sends++
	p.emitStarted(agent, task)
	return nil
}

func (p *partExecution) emitStarted(agent *contract.RegistryEntry, task *contract.Task) {
	report := p.newReport(agent, task)
	p.run.Emit(&contract.Event{Type: contract.EventTaskStarted, Task: &report})
}

// newReport returns the report of a task that runs.
func (p *partExecution) newReport(agent *contract.RegistryEntry, task *contract.Task) contract.TaskReport {
	return contract.TaskReport{
		TaskID: task.TaskID, AgentID: agent.ID, SubtaskTitle: p.part.Title, Status: contract.TaskRunning, Attempts: task.Attempt,
	}
}

// setOutcome makes the outcome of a task the current one of the part.
func (p *partExecution) setOutcome(task *contract.Task, agentID string, out dispatch.Outcome) {
	if p.attempted {
		p.addFailedAttempt(p.current.Report.AsFailedAttempt(p.current.Result))
	}
	p.attempted = true
	if out.Err == nil || out.Err.Code != contract.TaskAgentUnavailable || out.Health == dispatch.HealthGood {
		p.excluded = append(p.excluded, agentID) // the agent has answered
	}
	p.current = newOutcome(task, agentID, out)
	p.uncertain = out.MayHaveExecuted
	p.current.Report.SubtaskTitle = p.part.Title // masked, as in the decision
	p.current.Report.FailedOver = p.failed
	if out.Result != nil {
		p.current.Report.Metrics = out.Result.ReportedMetrics()
		p.current.Report.Logs = out.Result.ReportedLogs(p.run.Request.Masking.MaskText)
	}
}

// addFailedAttempt adds a failed attempt to the report. An agent that never got the
// part is listed once, even if the part was offered to it in several rounds.
func (p *partExecution) addFailedAttempt(attempt contract.FailedAttempt) {
	known := slices.ContainsFunc(p.failed, func(f contract.FailedAttempt) bool {
		return attempt.Attempts == 0 && f.Attempts == 0 && f.AgentID == attempt.AgentID
	})
	if !known && len(p.failed) < maxFailedAttempts {
		p.failed = append(p.failed, attempt)
	}
}

// hasEnded reports whether no other agent may get the part: the current one
// executed it, or may have. A failure that the agent reports does not end the
// part, because a standby may succeed.
func (p *partExecution) hasEnded() bool {
	status := p.current.Report.Status
	return status == contract.TaskSuccess || status == contract.TaskPartial || p.uncertain
}

// agentsDown returns the outcome of a part that only agents known to be down could
// execute.
func (p *partExecution) agentsDown() plan.Outcome {
	detail := "not called"
	for _, gate := range p.part.Down.Gates {
		detail = "not called: " + gate.Reason
	}
	return p.executor.NotSent(p.part, contract.TaskAgentUnavailable, detail)
}

func newOutcome(task *contract.Task, agentID string, out dispatch.Outcome) plan.Outcome {
	report := contract.TaskReport{
		TaskID: task.TaskID, AgentID: agentID, SubtaskTitle: task.SubtaskTitle,
		Attempts: out.Attempts, LatencyMS: contract.ToMilliseconds(out.Latency), Error: out.Err,
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
