package agentkit

import (
	"context"
	"sync"
)

// What is remembered of tasks that are done, at most.
const (
	maxRemembered      = 4096
	maxRememberedBytes = 16 << 20
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
	later chan struct{}
	// These two are guarded by the memory's mu.
	postponed bool // later is closed
	unwanted  bool // the router has cancelled the task
}

// memory knows the tasks under way and the latest that are done, so that no
// task is done twice. It forgets the oldest first.
type memory struct {
	maxJobs, maxBytes int

	mu    sync.Mutex
	jobs  map[jobKey]*job
	past  []*job // done, oldest first; all in jobs
	bytes int    // of the answers in past
}

func newMemory(maxJobs, maxBytes int) *memory {
	return &memory{maxJobs: maxJobs, maxBytes: maxBytes, jobs: map[jobKey]*job{}}
}

// begin returns the job with the key. first is true when it was not known: the
// caller must do it, and finish it. mayWait says that its Result may come later.
func (m *memory) begin(key jobKey, cancel context.CancelFunc, mayWait bool) (j *job, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j, known := m.jobs[key]; known {
		return j, false
	}
	j = &job{key: key, cancel: cancel, done: make(chan struct{})}
	if mayWait {
		j.later = make(chan struct{})
	}
	m.jobs[key] = j
	return j, true
}

// postpone makes the job one whose Result comes later, unless it is done or
// cannot be. It reports whether the job is one.
func (m *memory) postpone(j *job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j.later != nil && !j.postponed && j.answer == nil {
		j.postponed = true
		close(j.later)
	}
	return j.postponed
}

// owed reports whether the Result of the job must be delivered.
func (m *memory) owed(j *job) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return j.postponed && !j.unwanted
}

// cancelAll ends the work on all jobs.
func (m *memory) cancelAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		j.cancel()
	}
}

// finish gives the answer to all who wait for the job, and keeps it.
func (m *memory) finish(j *job, answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(j, answer)
}

// cancel ends the work on the job. One that is not known counts as done, with
// the answer.
func (m *memory) cancel(key jobKey, answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, known := m.jobs[key]
	if known {
		j.unwanted = true
		j.cancel()
		return
	}
	j = &job{key: key, done: make(chan struct{})}
	m.jobs[key] = j
	m.keep(j, answer)
}

// keep must be called with mu held.
func (m *memory) keep(j *job, answer []byte) {
	j.answer = answer
	j.cancel = func() {} // what it held on to, the whole request, can go
	close(j.done)
	m.past = append(m.past, j)
	m.bytes += len(answer)
	// The latest stays, however large it is: it is the one most likely asked
	// for again.
	for len(m.past) > 1 && (len(m.past) > m.maxJobs || m.bytes > m.maxBytes) {
		oldest := m.past[0]
		m.past[0] = nil // append reuses the array only from here on
		m.past = m.past[1:]
		m.bytes -= len(oldest.answer)
		delete(m.jobs, oldest.key)
	}
}
