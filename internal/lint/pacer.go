package lint

import (
	"context"
	"sync"
	"time"
)

// A check uses the processor for checkSlice and then pauses minPauses times as long, or up
// to maxPauses times while the process is busy. Slices of more than one check do not
// overlap, so that all checks of a process together use at most a quarter of one processor.
const (
	checkSlice = 2 * time.Millisecond
	minPauses  = 3
	maxPauses  = 31
)

// lateWake is how much too late a pause ends if other goroutines wait for the processor.
const lateWake = checkSlice / 2

// Pacer limits the share of the processor that the checks of callers get, because
// training a large registry takes seconds. The zero value is ready.
type Pacer struct {
	slice  sync.Mutex
	pauses int // of the last pause; guarded by slice
}

// Turn is one check. One goroutine owns it.
type Turn struct {
	pacer *Pacer
	ctx   context.Context //nolint:containedctx // the check's, which is one call
	hurry func() bool
	began time.Time
}

// Begin waits for the first slice of a check, which must be ended. If hurry returns true,
// the check no longer pauses.
func (p *Pacer) Begin(ctx context.Context, hurry func() bool) *Turn {
	p.slice.Lock()
	return &Turn{pacer: p, ctx: ctx, hurry: hurry, began: time.Now()}
}

// Pace pauses if the slice is over. It reports false if ctx has ended, and the check with
// it.
func (t *Turn) Pace() bool {
	used := time.Since(t.began)
	if used < checkSlice {
		return true
	}
	if !t.hurry() {
		t.pacer.pause(t.ctx, used)
	}
	t.pacer.slice.Unlock() // after the pause, so that no other check uses it
	t.pacer.slice.Lock()
	t.began = time.Now()
	return t.ctx.Err() == nil
}

// pause waits for a multiple of the time that was used, or until ctx ends.
func (p *Pacer) pause(ctx context.Context, used time.Duration) {
	p.pauses = max(p.pauses, minPauses)
	began, length := time.Now(), time.Duration(p.pauses)*used
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	p.pauses = adaptPauses(p.pauses, time.Since(began)-length)
}

// adaptPauses returns the length of the next pause after one that ended late by a time.
func adaptPauses(pauses int, late time.Duration) int {
	if late > lateWake {
		return min(2*pauses+1, maxPauses)
	}
	return max(pauses-1, minPauses)
}

// End ends the check.
func (t *Turn) End() { t.pacer.slice.Unlock() }
