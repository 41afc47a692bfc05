package agentkit

import (
	"context"
	"sync"
)

// Limits for finished tasks.
const (
	maxFinishedTasks = 4096
	maxFinishedBytes = 16 << 20
)

// jobKey identifies a task. It includes the caller, because with a token for
// several tasks one caller must not get the result of another.
type jobKey struct {
	caller Identity
	taskID string
}

// job is a task in progress or finished.
type job struct {
	key    jobKey
	cancel context.CancelFunc
	done   chan struct{} // closed when answer is set
	answer []byte        // the Result, encoded
	// accepted is closed when the Result is to be sent to the callback; nil = the
	// task has no callback.
	accepted chan struct{}
	// The task cache's mu guards these two.
	isAccepted  bool // accepted is closed
	isCancelled bool // by the router
}

// taskCache contains the tasks in progress and the latest finished ones, so that
// no task is executed twice. It evicts the oldest finished task first.
type taskCache struct {
	maxFinished, maxBytes int

	mu       sync.Mutex
	jobs     map[jobKey]*job
	finished []*job // oldest first; all in jobs
	bytes    int    // of the answers in finished
}

func newTaskCache(maxJobs, maxBytes int) *taskCache {
	return &taskCache{maxFinished: maxJobs, maxBytes: maxBytes, jobs: map[jobKey]*job{}}
}

// startJob returns the job with the key. If the job is new, first is true, and the
// caller must execute and finish it. If its Result can be sent to a callback,
// hasCallback is true.
func (m *taskCache) startJob(key jobKey, cancel context.CancelFunc, hasCallback bool) (j *job, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j, known := m.jobs[key]; known {
		return j, false
	}
	j = &job{key: key, cancel: cancel, done: make(chan struct{})}
	if hasCallback {
		j.accepted = make(chan struct{})
	}
	m.jobs[key] = j
	return j, true
}

// acceptAsync makes the job asynchronous, unless it is done or has no callback. It
// reports whether the job is asynchronous.
func (m *taskCache) acceptAsync(j *job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.accepted != nil && !j.isAccepted && j.answer == nil {
		j.isAccepted = true
		close(j.accepted)
	}
	return j.isAccepted
}

// mustDeliver reports whether the Result must be sent to the callback.
func (m *taskCache) mustDeliver(j *job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return j.isAccepted && !j.isCancelled
}

// cancelAll cancels all jobs.
func (m *taskCache) cancelAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		j.cancel()
	}
}

// finishJob stores the answer and wakes all requests that wait for the job.
func (m *taskCache) finishJob(j *job, answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeResult(j, answer)
}

// cancelJob cancels the job. An unknown job is stored as finished, with the
// answer.
func (m *taskCache) cancelJob(key jobKey, answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, known := m.jobs[key]
	if known {
		j.isCancelled = true
		j.cancel()
		return
	}
	j = &job{key: key, done: make(chan struct{})}
	m.jobs[key] = j
	m.storeResult(j, answer)
}

// storeResult finishes the job. The caller holds mu.
func (m *taskCache) storeResult(j *job, answer []byte) {
	j.answer = answer
	j.cancel = func() {} // release the memory of the request
	close(j.done)
	m.finished = append(m.finished, j)
	m.bytes += len(answer)
	// The latest stays whatever its size, because it is the most likely to be
	// requested again.
	for len(m.finished) > 1 && (len(m.finished) > m.maxFinished || m.bytes > m.maxBytes) {
		oldest := m.finished[0]
		m.finished[0] = nil // release the memory before append copies the slice
		m.finished = m.finished[1:]
		m.bytes -= len(oldest.answer)
		delete(m.jobs, oldest.key)
	}
}
