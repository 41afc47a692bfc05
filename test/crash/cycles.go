package main

import (
	"context"
	"errors"
	"fmt"
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
	concurrentFills  = 2                      // callers that keep a small store full
	fills            = 260                    // long requests of which half of a small store is full
	maxCancelPause   = 100 * time.Millisecond // between two cancels
	maxServerPause   = 300 * time.Millisecond // for which the external store is down
	endTimeout       = time.Minute            // until all requests have ended after the last cycle
)

// cycleRun is a part with routers that live for less than a second.
type cycleRun struct {
	*testbed

	mu         sync.Mutex
	lastPrompt int     // number in the last prompt
	unanswered []order // with an idempotency key, because only these can be resent
	answered   []order // with an idempotency key
	earlyKills int     // routers killed during their start
}

// runCycles runs n cycles, and one more that ends with a graceful shutdown.
func runCycles(ctx context.Context, title string, n int, cfg testbedConfig) (_ *report, err error) {
	w, err := newTestbed(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	c := &cycleRun{testbed: w}
	if err := c.fillStore(ctx); err != nil {
		return nil, err
	}
	for i := range n {
		end := c.killRouter
		if c.external && i%6 != 5 {
			end = func() error { return c.restartServer(ctx, i%2 == 0) }
		}
		err := c.runCycle(ctx, end)
		if i == n/2 && err == nil { // graceful shutdown
			err = c.runCycle(ctx, func() error { c.stopRouter(ctx); return nil })
		}
		if err != nil {
			return nil, fmt.Errorf("cycle %d: %w", i+1, err)
		}
	}
	if err := c.finishRun(ctx); err != nil {
		return nil, err
	}
	r := &report{title: fmt.Sprintf("%s: %d cycles, %d routers also killed during the start; seed %d", title, n, c.earlyKills, cfg.seed)}
	if err := c.runChecks(ctx, r); err != nil {
		return nil, err
	}
	slices.Sort(c.startTimes)
	r.addFigure("start to listening, ms: p50, max", "%d, %d",
		c.startTimes[len(c.startTimes)/2].Milliseconds(), c.startTimes[len(c.startTimes)-1].Milliseconds())
	return r, nil
}

// restartServer kills or stops the external store, and starts it after a pause.
func (c *cycleRun) restartServer(ctx context.Context, kill bool) error {
	end := (*process.Process).Kill
	if !kill {
		end = func(p *process.Process) error { return p.Stop(ctx) }
	}
	if err := c.server.end(end); err != nil {
		return err
	}
	process.Sleep(ctx, c.rng.durationUpTo(maxServerPause))
	return c.server.start(ctx)
}

// runCycle starts a router if none runs, uses it and calls end. One of eight routers
// before is killed during its start.
func (c *cycleRun) runCycle(ctx context.Context, end func() error) error {
	if c.router == nil && c.rng.oneIn(8) {
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
	jobs := 4 + concurrentOrders
	if c.maxBytes != "" {
		jobs += concurrentFills
	}
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
		case 3:
			c.cancelRequests(ctx, lives)
		default:
			if i < 4+concurrentOrders {
				c.sendOrders(ctx, lives)
			} else {
				c.keepFull(ctx, lives)
			}
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
	return c.killProcess(p)
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
		c.queueOrder(o, answered[0])
	}
}

// fillStore sends as many long requests as a small store contains.
func (c *cycleRun) fillStore(ctx context.Context) error {
	if c.maxBytes == "" {
		return nil
	}
	if err := c.startRouter(ctx); err != nil {
		return err
	}
	run.ForEach(ctx, concurrentSubmitters, fills, func(ctx context.Context, i int) { c.callers.submitOrder(ctx, c.longOrder()) })
	return ctx.Err()
}

// keepFull sends long requests as long as the router lives.
func (c *cycleRun) keepFull(ctx, lives context.Context) {
	for lives.Err() == nil {
		if !c.callers.submitOrder(ctx, c.longOrder()) {
			process.Sleep(lives, maxPause)
		}
	}
}

// longOrder returns a request that fills the audit log, and every other time also the
// bucket of asynchronous requests.
func (c *cycleRun) longOrder() order {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastPrompt++
	if c.lastPrompt%2 == 0 {
		return newOrder(longPrompt(c.lastPrompt), "", requestTimeoutMS, false)
	}
	return newSyncOrder(longPrompt(c.lastPrompt), "")
}

// nextOrder returns an unanswered order if there is one, sometimes an answered one,
// else a new one.
func (c *cycleRun) nextOrder() (_ order, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unanswered) > 0 {
		o := c.unanswered[0]
		c.unanswered = c.unanswered[1:]
		return o, true
	}
	if len(c.answered) > 0 && c.rng.oneIn(8) {
		return c.answered[c.rng.intN(len(c.answered))], true
	}
	c.lastPrompt++
	key := ""
	if c.rng.oneIn(3) {
		key = fmt.Sprintf("key-%d", c.lastPrompt)
	}
	if c.rng.oneIn(4) {
		kinds := []string{plainPrompt, costPrompt, logPrompt}
		return newSyncOrder(fmt.Sprintf(kinds[c.rng.intN(len(kinds))], c.lastPrompt), key), false
	}
	kinds := promptTemplates()
	kind := c.rng.intN(len(kinds))
	timeout, hold := requestTimeoutMS, false
	if kinds[kind] == asyncPrompt && c.rng.oneIn(6) {
		timeout, hold = shortTimeoutMS, true // the router has to end it at its deadline
	}
	return newOrder(fmt.Sprintf(kinds[kind], c.lastPrompt), key, timeout, hold), false
}

// queueOrder remembers an order with a key, to send it again.
func (c *cycleRun) queueOrder(o order, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case o.key == "":
	case answered:
		c.answered = append(c.answered, o)
	default:
		c.unanswered = append(c.unanswered, o)
	}
}

// cancelRequests cancels some open requests.
func (c *cycleRun) cancelRequests(ctx, lives context.Context) {
	for process.Sleep(lives, c.rng.durationUpTo(maxCancelPause)) {
		if open := c.ledger.openRequests(); len(open) > 0 {
			c.callers.cancelRequest(ctx, open[c.rng.intN(len(open))])
		}
	}
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
			c.followWatched(ctx, open[len(open)-1-c.rng.intN(min(len(open), sampleSize))])
		}
	}
}

// followWatched reads the events of a request. If they do not end in time, although
// the request has ended, this is a violation.
func (c *cycleRun) followWatched(ctx context.Context, id string) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	run.ForEach(ctx, 2, 2, func(ctx context.Context, i int) {
		if i == 0 {
			c.callers.followEvents(reading, id)
			stop()
			return
		}
		defer stop()
		if process.Sleep(reading, process.IOTimeout) {
			c.callers.fetchRequest(ctx, id)
			if !slices.Contains(c.ledger.openRequests(), id) && process.Sleep(reading, process.IOTimeout) {
				c.ledger.recordUnexpected(id, "the request has ended, but its stream of events does not end")
			}
		}
	})
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
