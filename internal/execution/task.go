package execution

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/router/plan"
)

// preparedTask is a task that was made before it may be sent.
type preparedTask struct {
	agent *contract.RegistryEntry // nil = there is none
	task  contract.Task
	token dispatch.Token
}

// prepareTask makes the task for the first agent of the part, unless a task was sent before.
func (p *partExecution) prepareTask(ctx context.Context) {
	if len(p.run.Previous) > 0 || len(p.part.Agents) == 0 {
		return
	}
	agent, _ := p.run.Registry.Eligible(p.part, p.part.Agents[0])
	if agent == nil {
		return
	}
	task := p.newTask(ctx, agent)
	token := p.executor.dispatcher.Prepare(ctx, p.newCall(agent, &task, len(p.part.Agents)-1))
	p.prepared = preparedTask{agent, task, token}
}

// takeTask returns the prepared task if it is for the agent, or a new one.
func (p *partExecution) takeTask(ctx context.Context, agent *contract.RegistryEntry) preparedTask {
	prepared := p.prepared
	p.prepared = preparedTask{}
	if prepared.agent != agent {
		prepared = preparedTask{agent: agent, task: p.newTask(ctx, agent)}
	}
	return prepared
}

// newTask returns the part as the agent receives it.
func (p *partExecution) newTask(ctx context.Context, agent *contract.RegistryEntry) contract.Task {
	task := buildTask(p.run.Request, p.part, agent, p.inputs)
	deadline, _ := ctx.Deadline() // a request always has one
	task.TaskID, task.Deadline, task.Attempt = p.executor.newID(), deadline.UTC(), 1
	return task
}

// PulledTask returns a part of the request as an agent gets it that pulls the task,
// without the members that depend on the lease.
func PulledTask(req *Request, part *plan.Part, agent *contract.RegistryEntry) contract.Task {
	return buildTask(req, part, agent, newTaskInputs(req))
}

func buildTask(req *Request, part *plan.Part, agent *contract.RegistryEntry, inputs *taskInputs) contract.Task {
	task := contract.Task{
		RequestID:    req.RequestID,
		TraceID:      req.TraceID,
		Intent:       part.Intent,
		Domains:      part.Domains,
		SubtaskTitle: contract.SubtaskTitle(req.Masking.RestoreText(part.Title, agent.Restore)),
		Confidence:   part.Confidence,
		Alternatives: part.Alternatives,
		Locale:       req.Masking.RestoreText(req.Locale, agent.Restore),
		SessionID:    req.SessionID,
		History:      inputs.historyFor(agent),
		Inputs:       inputs.forAgent(agent),
	}
	if len(task.Alternatives) > 0 {
		task.Intent = contract.Unknown
	}
	return task
}

// newCall returns the call of the agent with a task of the part, which standbys can take
// over.
func (p *partExecution) newCall(agent *contract.RegistryEntry, task *contract.Task, standbys int) dispatch.Call {
	return dispatch.Call{Agent: agent, Caller: p.run.Request.Caller, Task: *task, Standbys: standbys}
}

func storedTask(part int, agent *contract.RegistryEntry, task *contract.Task, now time.Time) requests.Task {
	return requests.Task{
		ID: task.TaskID, AgentID: agent.ID, Part: part, SentAt: now.UTC(),
		Attempts: task.Attempt, Idempotent: agent.Endpoint.Idempotent,
	}
}
