package execution

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// TaskRecorder records the progress of the tasks of one request.
type TaskRecorder interface {
	// Sent records that a task is about to be sent. If stored is true, the task must be
	// in a stored record when Sent returns, because its agent gets it from there, from
	// whichever process. If Sent returns an error, the task is not sent.
	Sent(ctx context.Context, task requests.Task, stored bool) error

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

// MemoryRecorder is the TaskRecorder of requests of a router without a store: their tasks
// are known as long as this process waits for them.
type MemoryRecorder struct{ pending *pendingTasks }

// InMemory returns the Persistence of synchronous requests of a router without a store.
func (e *Executor) InMemory() Persistence {
	recorder := MemoryRecorder{pending: e.callbacks.pending}
	return Persistence{Recorder: recorder, Results: recorder, Permit: NoPermit{}}
}

// errNoStore rejects a task that must be stored.
var errNoStore = errors.New("the router has no store")

// Sent implements TaskRecorder; there is nothing to write.
func (MemoryRecorder) Sent(_ context.Context, _ requests.Task, stored bool) error {
	if stored {
		return errNoStore
	}
	return nil
}

// Resent implements TaskRecorder; there is nothing to write.
func (MemoryRecorder) Resent(context.Context, string, int) error { return nil }

// AwaitingCallback implements TaskRecorder.
func (MemoryRecorder) AwaitingCallback(context.Context, string) (dispatch.Outcome, bool) {
	return dispatch.Outcome{}, false
}

// Finished implements TaskRecorder.
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
