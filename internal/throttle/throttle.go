// Package throttle protects callers of a busy process from each other. Go's scheduler runs
// goroutines in the order in which they became ready, whoever they work for. If one caller
// keeps all processors busy, the goroutines of others wait behind its goroutines, and the
// only way to shorten that queue is to begin fewer requests.
//
//	t := throttle.New[string](2*time.Millisecond, throttle.NewDelayMeter())
//	if _, ok := t.Wait(ctx, tenant); !ok {
//		return errOverloaded
//	}
//
// throttle.go delays requests, adjust.go decides how many may begin, delay.go measures how
// long goroutines wait.
package throttle

import (
	"context"
	"sync"
	"time"
)

// maxWait is how long a request is delayed before it is rejected.
const maxWait = time.Second

// maxOwners bounds the memory. Further owners are not counted and not limited.
const maxOwners = 10_000

// Throttle delays requests of the owners that send the most while the process is
// overloaded, and rejects those that would wait for more than a second. An owner alone is
// never limited. Its methods may be called from any goroutine.
type Throttle[Owner comparable] struct {
	maxDelay time.Duration
	measure  func() SchedulingDelay

	mu     sync.Mutex
	began  time.Time // of the interval
	owners map[Owner]*load
}

// New returns a throttle for a process that is overloaded if its scheduling delay exceeds
// maxDelay. measure returns the delay since its previous call.
func New[Owner comparable](maxDelay time.Duration, measure func() SchedulingDelay) *Throttle[Owner] {
	return &Throttle[Owner]{maxDelay: maxDelay, measure: measure, owners: map[Owner]*load{}}
}

// load is what an owner sends, and its limit.
type load struct {
	latest  time.Time // request
	started int       // requests in this interval
	rate    float64   // of started requests per second; a moving average

	limit  float64       // requests that may begin in a second; 0 = no limit
	next   time.Time     // from when the next request may begin
	queued int           // requests that wait
	waited bool          // a request in this interval
	turn   chan struct{} // holds a value while a request waits for next; others wait in order
}

// Wait returns when a request of the owner may begin, and how long it waited. It returns
// false if the request must not begin: it would wait for too long, or ctx has ended.
func (t *Throttle[Owner]) Wait(ctx context.Context, owner Owner) (waited time.Duration, ok bool) {
	arrived := time.Now()
	l, wait, ok := t.enter(owner, arrived)
	if !wait {
		return 0, ok
	}
	ctx, cancel := context.WithDeadline(ctx, arrived.Add(maxWait))
	defer cancel()
	if ok = t.waitForTurn(ctx, l); !ok {
		t.leave(l)
	}
	return time.Since(arrived), ok
}

// waitForTurn returns when a request may begin, or false if ctx ends before.
func (t *Throttle[Owner]) waitForTurn(ctx context.Context, l *load) bool {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return false
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			left := t.begin(l)
			if left == 0 {
				return true
			}
			timer.Reset(left)
		case <-ctx.Done():
			return false
		}
	}
}

// enter counts a request. It returns wait if the request must wait for its turn, and
// otherwise whether it may begin.
func (t *Throttle[Owner]) enter(owner Owner, now time.Time) (l *load, wait, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.began) >= interval {
		t.endInterval(now)
	}
	l = t.owners[owner]
	if l == nil {
		if len(t.owners) >= maxOwners {
			return nil, false, true
		}
		l = &load{turn: make(chan struct{}, 1)}
		t.owners[owner] = l
	}
	l.latest = now
	if l.queued == 0 && l.start(now) == 0 {
		return l, false, true
	}
	l.waited = true
	if float64(l.queued) >= l.limit*maxWait.Seconds() {
		return l, false, false
	}
	l.queued++
	return l, true, true
}

// begin ends the wait of the request whose turn it is, or returns how long it must still
// wait.
func (t *Throttle[Owner]) begin(l *load) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := l.start(time.Now())
	if left == 0 {
		l.queued--
	}
	return left
}

// leave ends the wait of a request that does not begin.
func (t *Throttle[Owner]) leave(l *load) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.queued--
}

// start counts a request that begins, or returns how long it must still wait. A request
// that begins late does not delay the next one.
func (l *load) start(now time.Time) time.Duration {
	if l.limit > 0 {
		if now.Before(l.next) {
			return l.next.Sub(now)
		}
		gap := time.Duration(float64(time.Second) / l.limit)
		if earliest := now.Add(-gap); l.next.Before(earliest) {
			l.next = earliest
		}
		l.next = l.next.Add(gap)
	}
	l.started++
	return 0
}
