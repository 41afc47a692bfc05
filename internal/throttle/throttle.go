// Package throttle protects callers of a busy process from each other. Go's scheduler runs
// goroutines in the order in which they became ready, whoever they work for. If one caller
// keeps all processors busy, the goroutines of others wait behind its goroutines, and the
// only way to shorten that queue is to begin fewer requests.
//
//	t := throttle.New[string](2*time.Millisecond, throttle.NewDelayMeter())
//	if _, ok := t.Wait(ctx, tenant, 1); !ok {
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
// overloaded, and rejects those that would wait for more than a second. An owner alone gets no
// limit, and an earlier one ends within seconds. Its methods may be called from any goroutine.
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
	started int       // cost of the requests that began in this interval
	rate    float64   // of that cost per second; a moving average

	limit  float64       // cost of the requests that may begin in a second; 0 = no limit
	next   time.Time     // from when the next request may begin
	queued int           // cost of the requests that wait
	waited bool          // a request in this interval
	turn   chan struct{} // holds a value while a request waits for next; others wait in order
}

// Wait returns when a request of the owner may begin, and how long it waited. It returns
// false if the request must not begin: it would wait for too long, or ctx has ended. cost is
// the work for the request, compared with that for the smallest, which costs 1.
func (t *Throttle[Owner]) Wait(ctx context.Context, owner Owner, cost int) (waited time.Duration, ok bool) {
	arrived := time.Now()
	l, wait, ok := t.enter(owner, cost, arrived)
	if !wait {
		return 0, ok
	}
	if ok = t.waitForTurn(ctx, l, cost); !ok {
		t.leave(l, cost)
	}
	return time.Since(arrived), ok
}

// waitForTurn returns when a request may begin, or false after maxWait or if ctx ends before.
func (t *Throttle[Owner]) waitForTurn(ctx context.Context, l *load, cost int) bool {
	deadline := time.NewTimer(maxWait)
	defer deadline.Stop()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-deadline.C:
		return false
	case <-ctx.Done():
		return false
	}
	for {
		left := t.begin(l, cost, time.Now())
		if left == 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-deadline.C:
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// enter counts a request. It returns wait if the request must wait for its turn, and
// otherwise whether it may begin.
func (t *Throttle[Owner]) enter(owner Owner, cost int, now time.Time) (l *load, wait, ok bool) {
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
	if l.queued == 0 && l.start(now, cost) == 0 {
		return l, false, true
	}
	l.waited = true
	if float64(l.queued) >= l.limit*maxWait.Seconds() {
		return l, false, false
	}
	l.queued += cost
	return l, true, true
}

// begin ends the wait of the request whose turn it is, or returns how long it must still
// wait.
func (t *Throttle[Owner]) begin(l *load, cost int, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := l.start(now, cost)
	if left == 0 {
		l.queued -= cost
	}
	return left
}

// leave ends the wait of a request that does not begin.
func (t *Throttle[Owner]) leave(l *load, cost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.queued -= cost
}

// start counts a request that begins, or returns how long it must still wait. A request
// that begins a little late does not delay the next one.
func (l *load) start(now time.Time, cost int) time.Duration {
	if l.limit > 0 {
		if now.Before(l.next) {
			return l.next.Sub(now)
		}
		gap := time.Duration(float64(time.Second) / l.limit) // after a request of cost 1
		if earliest := now.Add(-gap); l.next.Before(earliest) {
			l.next = earliest
		}
		l.next = l.next.Add(time.Duration(cost) * gap)
	}
	l.started += cost
	return 0
}
