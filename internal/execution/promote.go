package execution

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// Promoter creates the stored record of a synchronous request.
type Promoter interface {
	// Promote creates the record of the running request, to which addTasks adds the
	// tasks, and returns it. From then on the record is the truth: another process can
	// store a result in it, cancel it, and take it over. If Promote returns an error,
	// no process will ever resume the request from a record. The cause is logged.
	Promote(ctx context.Context, addTasks func(*requests.Record) error) (*OwnedRequest, error)
}

// PromotingTaskRecorder is the TaskRecorder of synchronous requests of a router with a
// store. Most of them never need a record: their tasks are kept in memory. The request is
// promoted to a stored one as soon as a result may arrive at, or must survive, another
// process:
//
//	in memory ──AwaitingCallback: an agent answered 202──────────▶ promoted
//	          ──Sent with stored: an agent is about to pull it──▶ promoted
//	          ──the store rejects the record──▶ in memory; the task that needed it fails
//
// A promoted request is recorded as an asynchronous one is.
type PromotingTaskRecorder struct {
	memory   MemoryRecorder
	results  ResultStore // of promoted requests
	promoter Promoter

	mu      sync.Mutex // held during the promotion: the steps of other parts wait for it
	tasks   []memoryTask
	durable *DurableRecorder // after the promotion
	err     error            // of the promotion, which is not tried again
}

// memoryTask is a task of a request that is not promoted.
type memoryTask struct {
	task requests.Task
	out  dispatch.Outcome // of a task that is done
}

// Synchronous returns the Persistence of a synchronous request, which the promoter stores if
// that is necessary. Synchronous requests are bounded by admission control, need no
// permit, and offer a part to each agent once.
func (e *Executor) Synchronous(p Promoter) Persistence {
	recorder := &PromotingTaskRecorder{memory: MemoryRecorder{pending: e.callbacks.pending}, results: e.callbacks.cfg.Results, promoter: p}
	return Persistence{Recorder: recorder, Results: recorder, Permit: NoPermit{}}
}

// Sent implements TaskRecorder.
func (s *PromotingTaskRecorder) Sent(ctx context.Context, task requests.Task, stored bool) error {
	if durable := s.lockUnlessPromoted(); durable != nil {
		return durable.Sent(ctx, task, stored)
	}
	defer s.mu.Unlock()
	task.State = requests.TaskSent
	s.tasks = append(s.tasks, memoryTask{task: task})
	if !stored {
		return nil
	}
	err := s.promote(ctx)
	if err != nil {
		s.tasks = s.tasks[:len(s.tasks)-1]
	}
	return err
}

// Resent implements TaskRecorder. A request that is not promoted is not resumed, and so
// sends no task again.
func (s *PromotingTaskRecorder) Resent(ctx context.Context, taskID string, attempt int) error {
	if durable := s.lockUnlessPromoted(); durable != nil {
		return durable.Resent(ctx, taskID, attempt)
	}
	s.mu.Unlock()
	return nil
}

// AwaitingCallback implements TaskRecorder. It promotes the request, unless there is
// nothing to wait for: the result has arrived, or the caller has disconnected. If the
// store rejects the record, the task fails, because its result could be stored nowhere.
func (s *PromotingTaskRecorder) AwaitingCallback(ctx context.Context, taskID string) (dispatch.Outcome, bool) {
	if durable := s.lockUnlessPromoted(); durable != nil {
		return durable.AwaitingCallback(ctx, taskID)
	}
	defer s.mu.Unlock()
	if pending, _ := s.memory.pending.lookup(taskID); pending != nil {
		if result := pending.completedWith(); result != nil {
			return dispatch.Outcome{Result: result}, true
		}
	}
	task := s.find(taskID)
	if ctx.Err() != nil || task == nil {
		return dispatch.Outcome{}, false
	}
	task.task.State = requests.TaskWaiting
	if s.promote(ctx) != nil {
		return unstoredOutcome(&task.task), true
	}
	return dispatch.Outcome{}, false
}

// Finished implements TaskRecorder.
func (s *PromotingTaskRecorder) Finished(ctx context.Context, taskID string, out dispatch.Outcome) dispatch.Outcome {
	if durable := s.lockUnlessPromoted(); durable != nil {
		return durable.Finished(ctx, taskID, out)
	}
	defer s.mu.Unlock()
	out = s.memory.Finished(ctx, taskID, out)
	if task := s.find(taskID); task != nil {
		task.task.State, task.out = requests.TaskDone, out
	}
	return out
}

// StoreResult implements ResultStore.
func (s *PromotingTaskRecorder) StoreResult(ctx context.Context, grant contract.TaskGrant, result *contract.Result) error {
	if s.lockUnlessPromoted() != nil {
		return s.results.StoreResult(ctx, grant, result)
	}
	defer s.mu.Unlock()
	return s.memory.StoreResult(ctx, grant, result)
}

// StoreNow promotes the request, unless it is stored already. The write may take until
// the deadline of the request.
func (s *PromotingTaskRecorder) StoreNow(ctx context.Context) error {
	if s.lockUnlessPromoted() != nil {
		return nil
	}
	defer s.mu.Unlock()
	return s.promote(ctx)
}

// lockUnlessPromoted returns the recorder of a promoted request. If the request is not
// promoted, it returns nil with mu locked.
func (s *PromotingTaskRecorder) lockUnlessPromoted() *DurableRecorder {
	s.mu.Lock()
	if s.durable == nil {
		return nil
	}
	defer s.mu.Unlock()
	return s.durable
}

// promote stores the request. The caller holds mu.
func (s *PromotingTaskRecorder) promote(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	owned, err := s.promoter.Promote(ctx, s.addTasks)
	if err != nil {
		s.err = err
		return err
	}
	s.durable = &DurableRecorder{owned: owned, draining: func() bool { return false }} // its caller waits
	s.tasks = nil
	return nil
}

// addTasks adds the tasks to a new record, with their outcomes and with the results
// that have arrived by callback.
func (s *PromotingTaskRecorder) addTasks(rec *requests.Record) error {
	for i := range s.tasks {
		task := &s.tasks[i].task
		if err := rec.Send(*task); err != nil {
			return err
		}
		var err error
		switch task.State {
		case requests.TaskDone:
			err = rec.Finish(task.ID, newStoredOutcome(s.tasks[i].out))
		case requests.TaskWaiting:
			err = rec.Wait(task.ID)
		case requests.TaskSent:
			if pending, _ := s.memory.pending.lookup(task.ID); pending != nil && pending.completedWith() != nil {
				_, err = rec.Deliver(task.ID, task.AgentID, pending.completedWith())
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *PromotingTaskRecorder) find(taskID string) *memoryTask {
	for i := range s.tasks {
		if s.tasks[i].task.ID == taskID {
			return &s.tasks[i]
		}
	}
	return nil
}

// unstoredOutcome is the outcome of a task that its agent accepted, and whose request
// cannot be stored. A standby may get the part only if the agent is idempotent.
func unstoredOutcome(task *requests.Task) dispatch.Outcome {
	const reason = " accepted the task, and the router could not store the request, so its result could not be received"
	if task.Idempotent {
		return dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: task.AgentID + reason}}
	}
	return dispatch.Outcome{MayHaveExecuted: true, Err: &contract.TaskError{
		Code: contract.TaskOutcomeUnknown, Detail: task.AgentID + reason + ": it may have done it",
	}}
}
