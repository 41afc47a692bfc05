package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/caprouter/caprouter/contract"
)

// maxResultBytes is what the router reads of a result.
const maxResultBytes = 4 << 20

// What a caller is told when there is no result of the work.
const (
	textFailed    = "the agent could not do this task"
	textCancelled = "the task was cancelled"
	textDeadline  = "the task was not done by its deadline"
	textInvalid   = "the agent's result could not be sent"
)

// runJob performs the job. Its answer is given in a deferred call, so that nobody
// waits for ever for work that left through runtime.Goexit.
func (a *Agent) runJob(ctx context.Context, j *job, task contract.Task) {
	answer := a.encodeResult(task.TaskID, Failure(textFailed))
	defer func() { a.tasks.finishJob(j, answer) }()
	answer = a.executeTask(ctx, task)
}

// executeTask does the work on a task and returns the encoded Result, whatever
// happens.
func (a *Agent) executeTask(ctx context.Context, task contract.Task) []byte {
	result, err := a.callWork(ctx, task)
	switch {
	case err == nil:
		return a.encodeResult(task.TaskID, result)
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		result = Failure(textDeadline)
	case ctx.Err() != nil:
		result = Failure(textCancelled)
		if errors.Is(err, context.Canceled) { // the work heeded it, as it should
			a.log.Info("task cancelled", "task_id", task.TaskID, "trace_id", task.TraceID)
			return a.encodeResult(task.TaskID, result)
		}
	default:
		result = Failure(textFailed)
	}
	a.log.Error("task failed", "task_id", task.TaskID, "trace_id", task.TraceID, "err", err)
	return a.encodeResult(task.TaskID, result)
}

// callWork calls the work and makes a panic an error.
func (a *Agent) callWork(ctx context.Context, task contract.Task) (result contract.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return a.work(ctx, task)
}

// encodeResult makes the bytes of the answer. A Result the router would refuse becomes
// a failure here, where the author of the agent can see why in the log.
func (a *Agent) encodeResult(taskID string, result contract.Result) []byte {
	result.TaskID = taskID
	if result.Status == "" {
		result.Status = contract.ResultSuccess
	}
	var trouble error
	switch result.Status {
	case contract.ResultSuccess, contract.ResultFailure, contract.ResultPartial:
	default:
		trouble = fmt.Errorf("status %q is none of success, failure, partial", result.Status)
	}
	answer, err := json.Marshal(result)
	if trouble == nil {
		trouble = err
	}
	if trouble == nil && len(answer) > maxResultBytes {
		trouble = fmt.Errorf("%d bytes are more than the router reads (%d)", len(answer), maxResultBytes)
	}
	if trouble == nil {
		return answer
	}
	a.log.Error("result not sent", "task_id", taskID, "err", trouble)
	failure := Failure(textInvalid)
	failure.TaskID = taskID
	answer, _ = json.Marshal(failure) // strings cannot fail
	return answer
}
