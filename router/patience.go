package router

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// A request nobody waits for has time. When none of its agents can be given a
// part now, because they are at their limits, have failed too often lately or
// cannot be reached, it is offered to them again later.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 30 * time.Second
	fullWait  = time.Second // at most, where agents are only full
	// maxGiven is how often one part is given out in vain: nobody was reached, or
	// what was reached said that it had not begun.
	maxGiven = 20
	// maxFailed is how many tries in vain a report tells of.
	maxFailed = 20
)

// wait pauses before the next round, and reports whether there is one.
func (d *delivery) wait(ctx context.Context, round int) bool {
	if d.job.tracked == nil || d.times >= maxGiven || !d.mayAskAgain() {
		return false
	}
	most := lastWait
	if d.current.Report.Attempts == 0 {
		most = fullWait
	}
	pause := min(firstWait<<min(round, 20), most)
	pause = pause/2 + rand.N(pause/2+1) //nolint:gosec // so that not all come back at once

	d.job.place.give()
	defer d.job.place.take(ctx)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// mayAskAgain reports whether there is an agent that has not said its word.
func (d *delivery) mayAskAgain() bool {
	for _, agent := range d.part.Agents {
		if !slices.Contains(d.closed, agent.ID) {
			return true
		}
	}
	return false
}
