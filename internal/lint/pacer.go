package lint

import (
	"context"
	"sync"
	"time"
)

// A check uses the processor for checkSlice and then pauses checkPauses times as long.
// Slices of more than one check do not overlap, so that all checks of a process together
// use a quarter of one processor.
const (
	checkSlice  = 2 * time.Millisecond
	checkPauses = 3
)

// Pacer limits the share of the processor that the checks of callers get, because
// training a large registry takes seconds. The zero value is ready.
type Pacer struct{ slice sync.Mutex }

// Turn is one check. One goroutine owns it.
type Turn struct {
	pacer *Pacer
	ctx   context.Context //nolint:containedctx // the check's, which is one call
	hurry func() bool
	began time.Time
}

// Begin waits for the first slice of a check, which must be ended. If ctx ends or hurry
// returns true, the check no longer pauses.
func (p *Pacer) Begin(ctx context.Context, hurry func() bool) *Turn {
	p.slice.Lock()
	return &Turn{pacer: p, ctx: ctx, hurry: hurry, began: time.Now()}
}

// Pace pauses if the slice is over.
func (t *Turn) Pace() {
	used := time.Since(t.began)
	if used < checkSlice {
		return
	}
	if !t.hurry() {
		pause := time.NewTimer(checkPauses * used)
		select {
		case <-pause.C:
		case <-t.ctx.Done():
		}
		pause.Stop()
	}
	t.pacer.slice.Unlock() // after the pause, so that no other check uses it
	t.pacer.slice.Lock()
	t.began = time.Now()
}

// End ends the check.
func (t *Turn) End() { t.pacer.slice.Unlock() }
