package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/caprouter/caprouter/contract"
)

// maxResultBytes is the router's limit for a result.
const maxResultBytes = 4 << 20

// Explanations in results that the work did not return.
const (
	textFailed    = "the agent could not do this task"
	textCancelled = "the task was cancelled"
	textDeadline  = "the task was not done by its deadline"
	textInvalid   = "the agent's result could not be sent"
)

// runJob executes the task and finishes the job, in a deferred call so that it is
// finished even if the work calls runtime.Goexit.
func (a *Agent) runJob(ctx context.Context, j *job, task contract.Task) {
	answer := a.encodeResult(task.TaskID, Failure(textFailed))
	defer func() { a.tasks.finishJob(j, answer) }()
	answer = a.executeTask(ctx, task)
}

// executeTask calls the work and returns the encoded Result, also for an error or
// a panic.
func (a *Agent) executeTask(ctx context.Context, task contract.Task) []byte {
	result, err := a.callWork(ctx, task)
	switch {
	case err == nil:
		return a.encodeResult(task.TaskID, result)
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		result = Failure(textDeadline)
	case ctx.Err() != nil:
		result = Failure(textCancelled)
		if errors.Is(err, context.Canceled) { // the expected reaction, not an error
			a.log.Info("task cancelled", "task_id", task.TaskID, "trace_id", task.TraceID)
			return a.encodeResult(task.TaskID, result)
		}
	default:
		result = Failure(textFailed)
	}
	a.log.Error("task failed", "task_id", task.TaskID, "trace_id", task.TraceID, "error", err)
	return a.encodeResult(task.TaskID, result)
}

// callWork calls the work and converts a panic to an error.
func (a *Agent) callWork(ctx context.Context, task contract.Task) (result contract.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return a.work(ctx, task)
}

// encodeResult encodes the result. A Result that the router would reject becomes a
// failure, and the reason is logged for the author of the agent.
func (a *Agent) encodeResult(taskID string, result contract.Result) []byte {
	result.TaskID = taskID
	if result.Status == "" {
		result.Status = contract.ResultSuccess
	}
	var invalid error
	switch result.Status {
	case contract.ResultSuccess, contract.ResultFailure, contract.ResultPartial:
	default:
		invalid = fmt.Errorf("status %q is none of success, failure, partial", result.Status)
	}
	answer, err := json.Marshal(result)
	if invalid == nil {
		invalid = err
	}
	if invalid == nil && len(answer) > maxResultBytes {
		invalid = fmt.Errorf("%d bytes are more than the router reads (%d)", len(answer), maxResultBytes)
	}
	if invalid == nil {
		return answer
	}
	a.log.Error("result not sent", "task_id", taskID, "error", invalid)
	failure := Failure(textInvalid)
	failure.TaskID = taskID
	answer, _ = json.Marshal(failure) // strings cannot fail
	return answer
}
