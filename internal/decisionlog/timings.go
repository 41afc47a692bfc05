package decisionlog

import (
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Timings measures the stages of one request. It is owned by the goroutine that
// serves the request.
type Timings struct {
	now   func() time.Time
	start time.Time
	last  time.Time          // end of the latest stage
	ms    map[string]float64 // stage → milliseconds
}

// StartTimings starts the first stage of a request that was received now.
func StartTimings(now func() time.Time) *Timings {
	start := now()
	return &Timings{now: now, start: start, last: start, ms: make(map[string]float64, 4)}
}

// ResumeTimings is StartTimings for a request that was received earlier.
func ResumeTimings(now func() time.Time, receivedAt time.Time) *Timings {
	t := StartTimings(now)
	t.start = receivedAt
	return t
}

// LastEnd returns the time at which the latest stage ended.
func (t *Timings) LastEnd() time.Time { return t.last }

// EndStage records the time since the previous stage ended.
func (t *Timings) EndStage(stage string) {
	now := t.now()
	t.ms[stage] = contract.ToMilliseconds(now.Sub(t.last))
	t.last = now
}

// FinishTotal writes the stages and the total to the decision.
func (t *Timings) FinishTotal(d *contract.Decision) {
	t.last = t.now()
	t.ms["total"] = contract.ToMilliseconds(t.elapsedTime())
	d.TimingsMS = t.ms
}

func (t *Timings) elapsedTime() time.Duration { return t.last.Sub(t.start) }

func (t *Timings) stageDuration(name string) time.Duration { return fromMilliseconds(t.ms[name]) }

func fromMilliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
