package agentkit

import (
	"context"
	"sync"
)

// What is remembered of tasks that are done, at most.
const (
	maxFinishedTasks = 4096
	maxFinishedBytes = 16 << 20
)

// jobKey names a task. The caller is part of it: with a token that is good for
// several tasks, one caller must not get at another one's answer.
type jobKey struct {
	caller Identity
	taskID string
}

// job is a task that is being done or was done.
type job struct {
	key    jobKey
	cancel context.CancelFunc
	done   chan struct{} // closed when answer is there
	answer []byte        // the Result, encoded
	// later is closed when the router has been told, or must take it, that the
	// Result comes by the callback; nil = it cannot come that way.
	accepted chan struct{}
	// These two are guarded by the memory's mu.
	isAccepted bool // later is closed
	isCanceled bool // the router has cancelled the task
}

// taskCache knows the tasks under way and the latest that are done, so that no
// task is done twice. It forgets the oldest first.
type taskCache struct {
	maxFinished, maxBytes int

	mu       sync.Mutex
	jobs     map[jobKey]*job
	finished []*job // done, oldest first; all in jobs
	bytes    int    // of the answers in past
}

func newTaskCache(maxJobs, maxBytes int) *taskCache {
	return &taskCache{maxFinished: maxJobs, maxBytes: maxBytes, jobs: map[jobKey]*job{}}
}

// startJob returns the job with the key. first is true when it was not known: the
// caller must do it, and finish it. mayWait says that its Result may come later.
func (m *taskCache) startJob(key jobKey, cancel context.CancelFunc, mayWait bool) (j *job, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j, known := m.jobs[key]; known {
		return j, false
	}
	j = &job{key: key, cancel: cancel, done: make(chan struct{})}
	if mayWait {
		j.accepted = make(chan struct{})
	}
	m.jobs[key] = j
	return j, true
}

// acceptAsync makes the job one whose Result comes later, unless it is done or
// cannot be. It reports whether the job is one.
func (m *taskCache) acceptAsync(j *job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.accepted != nil && !j.isAccepted && j.answer == nil {
		j.isAccepted = true
		close(j.accepted)
	}
	return j.isAccepted
}

// mustDeliver reports whether the Result of the job must be delivered.
func (m *taskCache) mustDeliver(j *job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return j.isAccepted && !j.isCanceled
}

// cancelAll ends the work on all jobs.
func (m *taskCache) cancelAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		j.cancel()
	}
}

// finishJob gives the answer to all who wait for the job, and keeps it.
func (m *taskCache) finishJob(j *job, answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.storeResult(j, answer)
}

// cancelJob ends the work on the job. One that is not known counts as done, with
// the answer.
func (m *taskCache) cancelJob(key jobKey, answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, known := m.jobs[key]
	if known {
		j.isCanceled = true
		j.cancel()
		return
	}
	j = &job{key: key, done: make(chan struct{})}
	m.jobs[key] = j
	m.storeResult(j, answer)
}

// storeResult must be called with mu held.
func (m *taskCache) storeResult(j *job, answer []byte) {
	j.answer = answer
	j.cancel = func() {} // what it held on to, the whole request, can go
	close(j.done)
	m.finished = append(m.finished, j)
	m.bytes += len(answer)
	// The latest stays, however large it is: it is the one most likely asked
	// for again.
	for len(m.finished) > 1 && (len(m.finished) > m.maxFinished || m.bytes > m.maxBytes) {
		oldest := m.finished[0]
		m.finished[0] = nil // append reuses the array only from here on
		m.finished = m.finished[1:]
		m.bytes -= len(oldest.answer)
		delete(m.jobs, oldest.key)
	}
}
