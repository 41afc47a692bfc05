package execution

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// resumeTasks continues with the tasks of the part that an earlier process sent, and
// reports whether the part has ended.
//
//	done, delivered or uncertain   the part has ended
//	done, failed                   continue with the next agent
//	waiting                        wait for the callback, or for the agent to pull it
//	sent, idempotent               send again under the same id
//	sent to the orchestrator       wait for its run, which is stored under the same id
//	sent, not idempotent           outcome_unknown: it may have been executed
//
// A task counts as idempotent if the registry declared it when the task was sent
// and, if the agent is still registered, declares it now. A task that its agent may
// not get any more has failed.
func (p *partExecution) resumeTasks(ctx context.Context) (ended bool) {
	for i := range p.run.Previous {
		task := &p.run.Previous[i]
		if task.Part != p.index {
			continue
		}
		agent := p.run.Registry.Entry(task.AgentID)
		switch {
		case task.State == requests.TaskDone:
			p.setOutcome(&contract.Task{TaskID: task.ID}, task.AgentID, storedOutcome(task))
			ended = p.hasEnded()
		case task.State == requests.TaskWaiting:
			ended = p.resumeWaiting(ctx, task, agent)
		case task.Idempotent && (agent == nil || agent.Endpoint.Idempotent):
			ended = p.resendTask(ctx, task)
		case hasResumableRun(agent):
			ended = p.resumeRun(ctx, task)
		default:
			ended = p.finishStored(ctx, task, unknownOutcome(task))
		}
		if ended {
			return true
		}
	}
	return false
}

// unknownOutcome is the outcome of a task that must not be sent again.
func unknownOutcome(task *requests.Task) dispatch.Outcome {
	return dispatch.Outcome{MayHaveExecuted: true, Err: &contract.TaskError{
		Code: contract.TaskOutcomeUnknown, Detail: task.AgentID + " was sent the task before the router restarted: it may have done it",
	}}
}

// hasResumableRun reports whether the tasks of the agent, nil if it has left the registry, are
// stored runs that dispatch.Call.MustResume finds.
func hasResumableRun(agent *contract.RegistryEntry) bool {
	return agent != nil && agent.Endpoint.Protocol == contract.ProtocolOrchestrator && !agent.Endpoint.Idempotent
}

// resumeRun waits for the run of a task, as soon as its agent can take one. The target begins
// no run. If the agent may not get the task any more, the run may continue.
func (p *partExecution) resumeRun(ctx context.Context, task *requests.Task) (ended bool) {
	for round := 0; ; round++ {
		agent, _ := p.run.Registry.Eligible(p.part, task.AgentID)
		if !hasResumableRun(agent) {
			return p.finishStored(ctx, task, unknownOutcome(task))
		}
		attempt := p.sendAgain(ctx, agent, task)
		switch {
		case attempt.sent:
			return attempt.ended
		case errors.Is(context.Cause(ctx), dispatch.ErrHandedOver):
			return true // the record still has the task
		case ctx.Err() != nil, !attempt.outdated && !p.waitForNextRound(ctx, round):
			return p.finishStored(ctx, task, unknownOutcome(task))
		}
	}
}

// resendTask sends the task again, as soon as its agent can take one.
func (p *partExecution) resendTask(ctx context.Context, task *requests.Task) (ended bool) {
	for round := 0; ; round++ {
		agent, refusal := p.run.Registry.Eligible(p.part, task.AgentID)
		if agent == nil {
			p.excluded = append(p.excluded, task.AgentID)
			return p.finishStored(ctx, task, dispatch.Outcome{Err: refusal})
		}
		attempt := p.sendAgain(ctx, agent, task)
		if attempt.ended {
			return true
		}
		if attempt.sent {
			return false // it has certainly failed, so continue with the next agent
		}
		if !p.waitForNextRound(ctx, round) {
			return true // the deadline passed or the process stops; the record still has the task
		}
	}
}

// sendAgain makes one attempt to send the task again, under the same id.
func (p *partExecution) sendAgain(ctx context.Context, agent *contract.RegistryEntry, task *requests.Task) attemptResult {
	again := p.newTask(ctx, agent)
	again.TaskID, again.Attempt = task.ID, task.Attempts+1
	return p.attemptAgent(ctx, agent, preparedTask{task: again}, 0, p.recordResent)
}

// recordResent records that a task is sent again.
func (p *partExecution) recordResent(ctx context.Context, agent *contract.RegistryEntry, task *contract.Task, _ int) error {
	if err := p.run.Recorder.Resent(ctx, task.TaskID, task.Attempt); err != nil {
		return err
	}
	p.emitStarted(agent, task)
	return nil
}

// resumeWaiting waits for the result of a task that its agent accepted from an
// earlier process. The callback is valid even if the agent has left the registry.
func (p *partExecution) resumeWaiting(ctx context.Context, task *requests.Task, agent *contract.RegistryEntry) (ended bool) {
	if agent == nil {
		agent = &contract.RegistryEntry{ID: task.AgentID}
	}
	report := p.newReport(agent, &contract.Task{TaskID: task.ID, Attempt: task.Attempts})
	pending := p.executor.callbacks.pending.add(report, p.run)
	defer p.executor.callbacks.pending.remove(pending)
	var out dispatch.Outcome
	if task.Pull != nil {
		out = p.awaitPulled(ctx, pending, agent, 0, task.SentAt)
	} else if out = p.awaitCallback(ctx, pending, agent); out.Result == nil && !out.Pending {
		p.cancelTask(task.ID, agent)
	}
	return p.finishStored(ctx, task, out)
}

// finishStored records the outcome of a task that an earlier process sent.
func (p *partExecution) finishStored(ctx context.Context, task *requests.Task, out dispatch.Outcome) (ended bool) {
	out.Attempts, out.Latency = max(out.Attempts, task.Attempts), p.executor.now().Sub(task.SentAt)
	if !out.Pending {
		out = p.run.Recorder.Finished(ctx, task.ID, out)
		p.logFailure(ctx, task.ID, task.AgentID, &out)
	}
	p.setOutcome(&contract.Task{TaskID: task.ID}, task.AgentID, out)
	return p.hasEnded() || ctx.Err() != nil
}
