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
type jobKey struct{ subject, taskID string }

// job is a task that is being done or was done.
type job struct {
	key    jobKey
	cancel context.CancelFunc
	done   chan struct{} // closed when answer is there
	answer []byte        // the Result, encoded
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
// caller must do it, and finish it.
func (m *memory) begin(key jobKey, cancel context.CancelFunc) (j *job, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j, known := m.jobs[key]; known {
		return j, false
	}
	j = &job{key: key, cancel: cancel, done: make(chan struct{})}
	m.jobs[key] = j
	return j, true
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
