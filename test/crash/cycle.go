package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// What a caller sends while a router lives.
const (
	mostOrders   = 6                      // of one caller
	longestBreak = 30 * time.Millisecond  // between two
	requestTime  = 5 * 60_000             // options.timeout_ms: a lost task must show as one
	shortTime    = 2_000                  // … of a request whose agent never delivers
	sampled      = 20                     // ended requests that are asked for again, a round
	longestStart = 150 * time.Millisecond // of a router that is killed before it listens
	resendings   = 200                    // of an order, at the end
)

// cycles is the first part: routers that live for less than a second.
type cycles struct {
	*world
	opts options

	mu         sync.Mutex
	serial     int     // of prompts
	unanswered []order // with a key; the answer was lost with the router
	stillborn  int     // routers killed while they started
	resent     int
	keyed      int
}

// runCycles kills the router as often as it is told, and reports.
func runCycles(ctx context.Context, at place, opts options) (_ *report, err error) {
	at, err = at.below("cycles")
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, at, opts.seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	c := &cycles{world: w, opts: opts}
	began := time.Now()
	for n := range opts.cycles {
		err := c.live(ctx, n+1, c.crash)
		if n == opts.cycles/2 && err == nil { // once in good order: what is open is handed back
			err = c.live(ctx, n+1, func() error { c.stop(ctx); return nil })
		}
		if err != nil {
			return nil, fmt.Errorf("cycle %d: %w", n+1, err)
		}
		if (n+1)%10 == 0 {
			c.progress(n + 1)
		}
	}
	lived := time.Since(began)
	if err := c.finish(ctx); err != nil {
		return nil, err
	}
	return c.report(lived, c.findings(ctx)), nil
}

// live is one cycle: a router starts, is used, and is killed. Now and then one is
// killed before that, while it starts.
func (c *cycles) live(ctx context.Context, n int, end func() error) error {
	if c.dice.one(8) {
		c.stillborn++
		if err := c.abort(ctx); err != nil {
			return err
		}
	}
	if err := c.up(ctx); err != nil {
		return err
	}
	lives, over := context.WithCancel(ctx)
	defer over()
	var killed error
	jobs := 3 + c.opts.callers
	run.ForEach(ctx, jobs, jobs, func(ctx context.Context, i int) {
		switch i {
		case 0:
			defer over()
			pause(ctx, c.dice.upTo(c.opts.life))
			killed = end()
		case 1:
			c.poll(ctx, lives)
		case 2:
			c.listen(ctx, lives)
		default:
			c.call(ctx, lives, n)
		}
	})
	return errors.Join(killed, ctx.Err())
}

// abort kills a router that has just begun to start.
func (c *cycles) abort(ctx context.Context) error {
	p, err := launch(ctx, c.place.binary, c.config)
	if err != nil {
		return err
	}
	pause(ctx, c.dice.upTo(longestStart))
	return p.kill()
}

// call is one caller. It first sends again what was not answered, then some more,
// for as long as the router lives.
func (c *cycles) call(ctx, lives context.Context, n int) {
	for range mostOrders {
		if !pause(lives, c.dice.upTo(longestBreak)) {
			return
		}
		o, again := c.next(n)
		callers := 1
		if o.key != "" && !again && c.dice.one(4) {
			callers = 2 // both at the same time
		}
		answered := make([]bool, callers)
		run.ForEach(ctx, callers, callers, func(ctx context.Context, i int) { answered[i] = c.callers.post(ctx, o) })
		if o.key != "" && !answered[0] {
			c.putBack(o)
		}
	}
}

// next is the order to send: one that was not answered, or a new one.
func (c *cycles) next(n int) (_ order, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unanswered) > 0 {
		o := c.unanswered[0]
		c.unanswered = c.unanswered[1:]
		c.resent++
		return o, true
	}
	c.serial++
	kinds := prompts()
	kind := c.dice.below(len(kinds))
	key := ""
	if c.dice.one(3) {
		key = fmt.Sprintf("key-%d", c.serial)
		c.keyed++
	}
	timeout, hold := requestTime, false
	if kinds[kind] == laterPrompt && c.dice.one(6) {
		timeout, hold = shortTime, true // its end is the router's to find
	}
	return newOrder(fmt.Sprintf(kinds[kind], c.serial), key, timeout, hold, n), false
}

func (c *cycles) putBack(o order) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered = append(c.unanswered, o)
}

// poll asks for what is open, and for some of what has ended: it must not change.
func (c *cycles) poll(ctx, lives context.Context) {
	for pause(lives, c.dice.upTo(longestBreak)) {
		for _, id := range c.ledger.open() {
			if lives.Err() != nil {
				return
			}
			c.callers.look(ctx, id)
		}
		all := c.ledger.all()
		for range min(sampled, len(all)) {
			if lives.Err() != nil {
				return
			}
			c.callers.look(ctx, all[c.dice.below(len(all))])
		}
	}
}

// listen follows the events of one open request after the other. A stream breaks
// with its router and goes on with the next.
func (c *cycles) listen(ctx, lives context.Context) {
	for pause(lives, c.dice.upTo(longestBreak)) {
		if open := c.ledger.open(); len(open) > 0 {
			c.callers.listen(ctx, open[len(open)-1-c.dice.below(min(len(open), sampled))])
		}
	}
}

// finish waits for all ends, then sees whether they outlast another crash.
func (c *cycles) finish(ctx context.Context) error {
	if err := c.up(ctx); err != nil {
		return err
	}
	c.resend(ctx)
	c.agents.idle(ctx, c.opts.settle) // they may know of requests that no caller does
	c.settle(ctx, c.opts.settle)
	c.listenAll(ctx)
	c.look(ctx, c.ledger.all())
	if err := c.crash(); err != nil {
		return err
	}
	if err := c.up(ctx); err != nil {
		return err
	}
	c.look(ctx, c.ledger.all())
	return ctx.Err()
}

// resend sends what was not answered until it is.
func (c *cycles) resend(ctx context.Context) {
	for range resendings {
		c.mu.Lock()
		orders := c.unanswered
		c.unanswered = nil
		c.resent += len(orders)
		c.mu.Unlock()
		if len(orders) == 0 {
			return
		}
		for _, o := range orders {
			if !c.callers.post(ctx, o) {
				c.putBack(o)
			}
		}
		if !pause(ctx, longestBreak) {
			return
		}
	}
	for _, o := range c.unanswered {
		c.ledger.wonder(o.key, "the order with this key is not answered, however often it is sent")
	}
}

// progress shows on a terminal how far the run is.
func (c *cycles) progress(n int) {
	info, err := os.Stderr.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	end := "\r"
	if n == c.opts.cycles {
		end = "\n"
	}
	fmt.Fprintf(os.Stderr, "cycle %d of %d: %d requests accepted, %d open   %s", n, c.opts.cycles, len(c.ledger.all()), len(c.ledger.open()), end)
}
