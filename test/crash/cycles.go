package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	maxOrders        = 6                      // per caller and cycle
	maxPause         = 30 * time.Millisecond  // between two requests or reads
	requestTimeoutMS = 5 * 60_000             // long, so that a lost task shows as an open request
	shortTimeoutMS   = 2_000                  // of a request whose agent never delivers
	sampleSize       = 20                     // ended requests that are read again per round
	maxStartTime     = 150 * time.Millisecond // of a router that is killed during its start
	maxLifetime      = 400 * time.Millisecond // of the other routers
	concurrentOrders = 4                      // callers
	endTimeout       = time.Minute            // until all requests have ended after the last cycle
)

// cycleRun is the first part: routers that live for less than a second.
type cycleRun struct {
	*testbed

	mu         sync.Mutex
	lastPrompt int     // number in the last prompt
	unanswered []order // with an idempotency key, because only these can be resent
	earlyKills int     // routers killed during their start
}

// runCycles kills the router opts.cycles times, and shuts it down gracefully once.
func runCycles(ctx context.Context, binary, dir string, opts options) (_ *report, err error) {
	w, err := newTestbed(ctx, binary, filepath.Join(dir, "cycles"), opts.seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	c := &cycleRun{testbed: w}
	for n := range opts.cycles {
		err := c.runCycle(ctx, c.killRouter)
		if n == opts.cycles/2 && err == nil { // graceful shutdown
			err = c.runCycle(ctx, func() error { c.stopRouter(ctx); return nil })
		}
		if err != nil {
			return nil, fmt.Errorf("cycle %d: %w", n+1, err)
		}
	}
	if err := c.finishRun(ctx); err != nil {
		return nil, err
	}
	r := &report{
		title:  fmt.Sprintf("%d kills, %d more during the start, one graceful shutdown; seed %d", opts.cycles, c.earlyKills, opts.seed),
		checks: c.runChecks(ctx),
	}
	c.ledger.addFigures(r)
	slices.Sort(c.startTimes)
	r.addFigure("start to listening, ms: p50, max", "%d, %d",
		c.startTimes[len(c.startTimes)/2].Milliseconds(), c.startTimes[len(c.startTimes)-1].Milliseconds())
	return r, nil
}

// runCycle starts a router, uses it and ends it. One of eight routers before is killed
// during its start.
func (c *cycleRun) runCycle(ctx context.Context, end func() error) error {
	if c.rng.oneIn(8) {
		c.earlyKills++
		if err := c.killDuringStart(ctx); err != nil {
			return err
		}
	}
	if err := c.startRouter(ctx); err != nil {
		return err
	}
	lives, over := context.WithCancel(ctx)
	defer over()
	var killed error
	const jobs = 3 + concurrentOrders
	run.ForEach(ctx, jobs, jobs, func(ctx context.Context, i int) {
		switch i {
		case 0:
			defer over()
			process.Sleep(ctx, c.rng.durationUpTo(maxLifetime))
			killed = end()
		case 1:
			c.pollRequests(ctx, lives)
		case 2:
			c.followStreams(ctx, lives)
		default:
			c.sendOrders(ctx, lives)
		}
	})
	return errors.Join(killed, ctx.Err())
}

func (c *cycleRun) killDuringStart(ctx context.Context) error {
	p, err := process.LaunchRouter(ctx, c.binary, c.config)
	if err != nil {
		return err
	}
	process.Sleep(ctx, c.rng.durationUpTo(maxStartTime))
	return p.Kill()
}

// sendOrders is one caller. It resends unanswered orders first, and stops when the
// router is killed.
func (c *cycleRun) sendOrders(ctx, lives context.Context) {
	for range maxOrders {
		if !process.Sleep(lives, c.rng.durationUpTo(maxPause)) {
			return
		}
		o, again := c.nextOrder()
		callers := 1
		if o.key != "" && !again && c.rng.oneIn(4) {
			callers = 2 // concurrent requests with the same key
		}
		answered := make([]bool, callers)
		run.ForEach(ctx, callers, callers, func(ctx context.Context, i int) { answered[i] = c.callers.submitOrder(ctx, o) })
		if o.key != "" && !answered[0] {
			c.requeueOrder(o)
		}
	}
}

// nextOrder returns an unanswered order if there is one, else a new one.
func (c *cycleRun) nextOrder() (_ order, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unanswered) > 0 {
		o := c.unanswered[0]
		c.unanswered = c.unanswered[1:]
		return o, true
	}
	c.lastPrompt++
	kinds := promptTemplates()
	kind := c.rng.intN(len(kinds))
	key := ""
	if c.rng.oneIn(3) {
		key = fmt.Sprintf("key-%d", c.lastPrompt)
	}
	timeout, hold := requestTimeoutMS, false
	if kinds[kind] == asyncPrompt && c.rng.oneIn(6) {
		timeout, hold = shortTimeoutMS, true // the router has to end it at its deadline
	}
	return newOrder(fmt.Sprintf(kinds[kind], c.lastPrompt), key, timeout, hold), false
}

func (c *cycleRun) requeueOrder(o order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered = append(c.unanswered, o)
}

// pollRequests reads open requests, and some ended ones, which must not change.
func (c *cycleRun) pollRequests(ctx, lives context.Context) {
	for process.Sleep(lives, c.rng.durationUpTo(maxPause)) {
		for _, id := range c.ledger.openRequests() {
			if lives.Err() != nil {
				return
			}
			c.callers.fetchRequest(ctx, id)
		}
		all := c.ledger.allRequests()
		for range min(sampleSize, len(all)) {
			if lives.Err() != nil {
				return
			}
			c.callers.fetchRequest(ctx, all[c.rng.intN(len(all))])
		}
	}
}

// followStreams reads the events of one open request after the other. A stream breaks
// when the router is killed, and continues with the next router.
func (c *cycleRun) followStreams(ctx, lives context.Context) {
	for process.Sleep(lives, c.rng.durationUpTo(maxPause)) {
		if open := c.ledger.openRequests(); len(open) > 0 {
			c.callers.followEvents(ctx, open[len(open)-1-c.rng.intN(min(len(open), sampleSize))])
		}
	}
}

// finishRun waits until all requests have ended, then checks that the results survive
// another kill.
func (c *cycleRun) finishRun(ctx context.Context) error {
	if err := c.startRouter(ctx); err != nil {
		return err
	}
	c.resendOrders(ctx)
	// Agents may know requests whose 202 no caller received.
	awaitCondition(ctx, endTimeout, func() bool { return c.agents.pendingCallbacks.Load() == 0 })
	c.awaitEnds(ctx, endTimeout)
	c.followRemaining(ctx)
	c.fetchRequests(ctx, c.ledger.allRequests())
	if err := c.killRouter(); err != nil {
		return err
	}
	if err := c.startRouter(ctx); err != nil {
		return err
	}
	c.fetchRequests(ctx, c.ledger.allRequests())
	return ctx.Err()
}

// resendOrders sends unanswered orders until they are answered.
func (c *cycleRun) resendOrders(ctx context.Context) {
	awaitCondition(ctx, endTimeout, func() bool {
		c.unanswered = slices.DeleteFunc(c.unanswered, func(o order) bool { return c.callers.submitOrder(ctx, o) })
		return len(c.unanswered) == 0
	})
	for _, o := range c.unanswered {
		c.ledger.recordUnexpected(o.key, "the order with this key is never answered")
	}
}
