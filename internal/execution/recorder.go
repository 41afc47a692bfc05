package execution

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// Recorder records the progress of the tasks of one request.
type Recorder interface {
	// Sent records that a task is about to be sent. If it returns an error, the
	// task is not sent.
	Sent(ctx context.Context, task requests.Task) error

	// Resent records that a task is about to be sent again under the same id.
	Resent(ctx context.Context, taskID string, attempt int) error

	// AwaitingCallback records that the agent accepted the task and posts its
	// result later. It returns true and the outcome if there is nothing to wait
	// for.
	AwaitingCallback(ctx context.Context, taskID string) (dispatch.Outcome, bool)

	// Finished records the outcome of a task and returns the one that counts: the
	// first, which may be a result that arrived by callback.
	Finished(ctx context.Context, taskID string, out dispatch.Outcome) dispatch.Outcome
}

func storedTask(part int, agent *contract.RegistryEntry, task *contract.Task, now time.Time) requests.Task {
	return requests.Task{
		ID: task.TaskID, AgentID: agent.ID, Part: part, SentAt: now.UTC(),
		Attempts: task.Attempt, Idempotent: agent.Endpoint.Idempotent,
	}
}

// MemoryRecorder is the Recorder of synchronous requests: their tasks are known as
// long as this process waits for them.
type MemoryRecorder struct{ pending *pendingTasks }

// Synchronous returns the Mode of synchronous requests. They are bounded by
// admission control, need no permit, and offer a part to each agent once.
func (e *Executor) Synchronous() Mode {
	recorder := MemoryRecorder{pending: e.callbacks.pending}
	return Mode{Recorder: recorder, Results: recorder, Permit: NoPermit{}}
}

// Sent implements Recorder; there is nothing to write.
func (MemoryRecorder) Sent(context.Context, requests.Task) error { return nil }

// Resent implements Recorder; there is nothing to write.
func (MemoryRecorder) Resent(context.Context, string, int) error { return nil }

// AwaitingCallback implements Recorder.
func (MemoryRecorder) AwaitingCallback(context.Context, string) (dispatch.Outcome, bool) {
	return dispatch.Outcome{}, false
}

// Finished implements Recorder.
func (m MemoryRecorder) Finished(_ context.Context, taskID string, out dispatch.Outcome) dispatch.Outcome {
	if task, _ := m.pending.lookup(taskID); task != nil {
		return task.close(out)
	}
	return out
}

// StoreResult implements ResultStore.
func (m MemoryRecorder) StoreResult(_ context.Context, grant contract.TaskGrant, result *contract.Result) error {
	hash := requests.ResultHash(result)
	switch task, endedWith := m.pending.lookup(grant.TaskID); {
	case task != nil:
		return task.complete(result, hash)
	case endedWith == hash:
		return nil
	case endedWith != "":
		return requests.ErrDifferentResult
	}
	return requests.ErrEnded
}
