package execution

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

// awaitCallback waits for the result of a task that the agent has accepted with
// 202. The permit is released meanwhile, because waiting costs little.
func (p *partExecution) awaitCallback(ctx context.Context, task *pendingTask, agent *contract.RegistryEntry) dispatch.Outcome {
	if out, ok := p.run.Recorder.AwaitingCallback(ctx, task.id); ok {
		if out.Err != nil { // no result is awaited
			p.cancelTask(task.id, agent)
		}
		return out
	}
	p.run.Permit.Release()
	defer p.run.Permit.Acquire(ctx)
	if p.executor.callbacks.await(ctx, task) {
		return dispatch.Outcome{Result: task.completedWith()}
	}
	return missingResult(ctx, agent)
}

// cancelTask asks the agent to abandon a task that it has accepted.
func (p *partExecution) cancelTask(taskID string, agent *contract.RegistryEntry) {
	p.executor.dispatcher.CancelTask(dispatch.Call{Agent: agent, Caller: p.run.Request.Caller, Task: contract.Task{
		TaskID: taskID, RequestID: p.run.Request.RequestID, TraceID: p.run.Request.TraceID,
	}})
}

// logFailure logs the outcome of a task whose result was to arrive later, unless there is a result.
// The targets log the tasks that fail on the connection.
func (p *partExecution) logFailure(ctx context.Context, taskID, agentID string, out *dispatch.Outcome) {
	if out.Err == nil {
		return
	}
	level := slog.LevelWarn
	if out.Err.Code == contract.TaskWasCancelled {
		level = slog.LevelDebug
	}
	p.executor.callbacks.cfg.Logger.Log(ctx, level, "task not done", "agent", agentID, "task_id", taskID,
		"trace_id", p.run.Request.TraceID, "attempts", out.Attempts, "code", out.Err.Code, "detail", out.Err.Detail)
}

// missingResult is the outcome of a task that was accepted, and whose result did
// not arrive in time.
func missingResult(ctx context.Context, agent *contract.RegistryEntry) dispatch.Outcome {
	uncertain := !agent.Endpoint.Idempotent
	switch {
	case errors.Is(context.Cause(ctx), dispatch.ErrHandedOver):
		return dispatch.Outcome{Pending: true}
	case errors.Is(ctx.Err(), context.Canceled):
		return dispatch.Outcome{MayHaveExecuted: uncertain, Err: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "the caller disconnected"}}
	case uncertain:
		return dispatch.Outcome{MayHaveExecuted: true, Err: &contract.TaskError{
			Code: contract.TaskOutcomeUnknown, Detail: agent.ID + " accepted the task and sent no result by the deadline: it may have done it",
		}}
	}
	return dispatch.Outcome{Err: &contract.TaskError{
		Code: contract.TaskDeadlineExceeded, Detail: agent.ID + " accepted the task and sent no result by the deadline",
	}}
}

// await waits for the result of a task and meanwhile reads the record now and then, in
// case a message of another process was lost. It reports whether there is a result.
func (c *Callbacks) await(ctx context.Context, task *pendingTask) bool {
	var poll <-chan time.Time
	for wait := c.cfg.Poll; ; wait = min(wait*3/2, maxPoll) {
		if wait > 0 {
			poll = time.After(wait)
		}
		select {
		case <-task.done:
			return true
		case <-ctx.Done():
			return false
		case <-poll:
			c.Refresh(ctx, task.run.Request.RequestID)
		}
	}
}

// maxPoll bounds the growing pause between two reads of a record, because many requests
// may wait for a long time.
const maxPoll = 30 * time.Second
