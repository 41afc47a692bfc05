package execution

import (
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

// pendingTasks are the tasks that this process has sent and whose results may
// arrive by callback.
//
// Of tasks that have ended it remembers a hash of the result, so that an agent
// that posts its result again, because the confirmation got lost, gets the same
// answer. Two generations bound this memory.
type pendingTasks struct {
	mu            sync.Mutex
	byID          map[string]*pendingTask
	recent, older map[string]string // task id → hash of the result
}

// maxHashes bounds the hashes in one generation.
const maxHashes = 4096

// pendingTask is one task that was sent.
type pendingTask struct {
	id, agentID string
	report      contract.TaskReport // for events while the task runs
	run         *Run

	mu     sync.Mutex
	result *contract.Result // the first result by callback; set once
	hash   string
	closed bool          // the execution has stopped waiting
	done   chan struct{} // closed when result is set
}

func newPendingTasks() *pendingTasks {
	return &pendingTasks{byID: map[string]*pendingTask{}, recent: map[string]string{}}
}

// add must be called before the task is sent, because a fast agent may post its
// result before it answers the request.
func (q *pendingTasks) add(report contract.TaskReport, r *Run) *pendingTask {
	task := &pendingTask{id: report.TaskID, agentID: report.AgentID, report: report, run: r, done: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byID[task.id] = task
	return task
}

func (q *pendingTasks) remove(task *pendingTask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.byID, task.id)
	task.mu.Lock()
	defer task.mu.Unlock()
	if task.hash == "" {
		return
	}
	if len(q.recent) >= maxHashes {
		q.recent, q.older = map[string]string{}, q.recent
	}
	q.recent[task.id] = task.hash
}

// lookup returns the task, or nil and the hash of the result with which it ended.
// The hash is "" if it is not known.
func (q *pendingTasks) lookup(taskID string) (task *pendingTask, hash string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	hash = q.recent[taskID]
	if hash == "" {
		hash = q.older[taskID]
	}
	return q.byID[taskID], hash
}

// complete sets the result of the task, unless it has one or has ended.
func (t *pendingTask) complete(result *contract.Result, hash string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.hash == hash:
		return nil
	case t.hash != "":
		return requests.ErrDifferentResult
	case t.closed:
		return requests.ErrEnded
	}
	t.result, t.hash = result, hash
	close(t.done)
	return nil
}

func (t *pendingTask) completedWith() *contract.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.result
}

// close ends the task with an outcome, and returns the one that counts: a result
// that arrived by callback wins.
func (t *pendingTask) close(out dispatch.Outcome) dispatch.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	switch {
	case t.result != nil:
		out.Result, out.Err, out.MayHaveExecuted = t.result, nil, false
	case out.Result != nil:
		t.hash = requests.ResultHash(out.Result) // posting it again is not a conflict
	}
	return out
}
