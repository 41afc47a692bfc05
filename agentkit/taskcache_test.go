package agentkit

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The cache is bounded, never evicts a running task, and evicts the oldest finished task first.
func TestTaskCache_EvictsOldestFinishedTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxJobs := rapid.IntRange(1, 5).Draw(t, "max jobs")
		maxBytes := rapid.IntRange(1, 50).Draw(t, "max bytes")
		m := newTaskCache(maxJobs, maxBytes)
		running := map[jobKey]*job{}
		var done []*job // oldest first
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := jobKey{Identity{Subject: "alice"}, fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "task"))}
			answer := make([]byte, rapid.IntRange(0, 30).Draw(t, "size"))
			switch rapid.SampledFrom([]string{"begin", "finish", "cancel"}).Draw(t, "step") {
			case "begin":
				_, known := m.jobs[key]
				j, first := m.startJob(key, func() {}, false)
				if first == known {
					t.Fatalf("begin: got first = %v, want the opposite of cached: %v", first, known)
				}
				if running[key] != nil && (first || j != running[key]) {
					t.Fatalf("got the running job %v evicted, want it kept", key)
				}
				if first {
					running[key] = j
				}
			case "finish":
				if j := running[key]; j != nil {
					m.finishJob(j, answer)
					delete(running, key)
					done = append(done, j)
				}
			case "cancel":
				_, known := m.jobs[key]
				m.cancelJob(key, answer)
				if !known {
					done = append(done, m.jobs[key])
				}
			}
			total := 0
			for i, j := range m.finished {
				total += len(j.answer)
				if want := done[len(done)-len(m.finished)+i]; j != want {
					t.Fatalf("got another job cached at %d", i)
				}
			}
			if total != m.bytes || len(m.finished) > maxJobs || len(m.finished) > 1 && total > maxBytes {
				t.Fatalf("got %d cached jobs with %d bytes (counted %d), limits %d and %d", len(m.finished), total, m.bytes, maxJobs, maxBytes)
			}
			if len(m.jobs) != len(running)+len(m.finished) {
				t.Fatalf("got %d jobs, want %d running and %d finished", len(m.jobs), len(running), len(m.finished))
			}
		}
	})
}
