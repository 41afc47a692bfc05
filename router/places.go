package router

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// maxAtWork is how many requests nobody waits for are worked on at a time. Those
// whose agents have accepted their tasks and send results later are not counted:
// they cost a goroutine each and may wait for a day.
const maxAtWork = 256

// place is what one request holds of the slots: one, as long as any part of it is
// at work. A nil place, of a request somebody waits for, holds nothing.
type place struct {
	slots chan struct{}
	freed chan struct{} // holds a token after a slot was given back

	// One waits for a slot at a time, under the lock: all parts of a request have
	// the same context, so that whoever waits behind another ends with it.
	mu    sync.Mutex
	parts int // at work
	held  bool
}

// take waits for a slot for a part. When ctx ends first the part goes on without
// one: it has little left to do.
func (p *place) take(ctx context.Context) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts++
	if p.held {
		return
	}
	select {
	case p.slots <- struct{}{}:
		p.held = true
		return
	default: // a free slot is taken also when ctx has ended
	}
	select {
	case p.slots <- struct{}{}:
		p.held = true
	case <-ctx.Done():
	}
}

// takeNow is take for a part that has only its end to write: it waits for nobody.
func (p *place) takeNow() {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	p.take(done)
}

// give says that a part is not at work any more.
func (p *place) give() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parts--; p.parts == 0 && p.held {
		<-p.slots
		p.held = false
		select {
		case p.freed <- struct{}{}:
		default: // somebody has been told already
		}
	}
}

// maxOpen is how many requests nobody waits for may be open. Each costs some
// memory until it ends; one more is refused, never dropped.
const maxOpen = 20_000

// openCount counts them.
type openCount struct {
	n    atomic.Int64
	room atomic.Int64 // until when, in Unix milliseconds, there is known to be room for more
}

// roomFor is how long it is believed that the store has room for more requests.
const roomFor = 200 * time.Millisecond

// enter reports whether there may be one more; each true is followed by a leave.
func (o *openCount) enter() bool {
	if o.n.Add(1) > maxOpen {
		o.n.Add(-1)
		return false
	}
	return true
}

// force counts one that is there already.
func (o *openCount) force() { o.n.Add(1) }

func (o *openCount) leave() { o.n.Add(-1) }

// OpenRequests counts the requests nobody waits for that have not ended.
func (r *Router) OpenRequests() int { return int(r.open.n.Load()) }
