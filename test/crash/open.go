package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// What the second part sends.
const (
	submitters  = 64   // callers at a time
	blockedTop  = 512  // requests whose agent does not answer, the most
	silentTime  = 3600 // seconds that the silent agents have
	floorStarts = 5
	fillTimeout = 5 * time.Minute
	workTimeout = 2 * time.Minute
)

// opened is the second part: many requests are open when the router is killed.
type opened struct {
	*world
	opts options
	r    *report
}

// runOpen fills a router with open requests, kills it, and measures the next.
func runOpen(ctx context.Context, at place, opts options) (_ *report, err error) {
	o := &opened{opts: opts, r: &report{title: fmt.Sprintf("%d requests open when the router is killed; %d CPUs", opts.open, runtime.NumCPU())}}
	if err := o.floor(ctx, at); err != nil {
		return nil, err
	}
	if at, err = at.below("open"); err != nil {
		return nil, err
	}
	if o.world, err = newWorld(ctx, at, opts.seed); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	for _, step := range []func(context.Context) error{o.fill, o.takeOver, o.finish} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	o.r.findings = o.findings(ctx)
	o.ledger.figures(o.r)
	o.r.add("errors the routers logged", "%s", tally(o.complaints))
	return o.r, nil
}

// floor measures what a router costs that has nothing to take over.
func (o *opened) floor(ctx context.Context, at place) (err error) {
	at, err = at.below("floor")
	if err != nil {
		return err
	}
	w, err := newWorld(ctx, at, o.opts.seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for range floorStarts + 1 {
		if err := errors.Join(w.crash(), w.up(ctx)); err != nil {
			return err
		}
	}
	again := slices.Sorted(slices.Values(w.starts[1:]))
	o.r.add("floor: start to listening, nothing open, ms: first, then p50, max", "%s, %s, %s",
		inMillis(w.starts[0]), inMillis(again[len(again)/2]), inMillis(again[len(again)-1]))
	o.r.add("floor: RSS when it listens, MiB", "%.0f", w.router.rss())
	return nil
}

// fill opens the requests. Most are accepted by an agent that stays silent. Some
// block theirs, more than are worked on at a time: what comes after those is on
// record and given to nobody.
func (o *opened) fill(ctx context.Context) error {
	if err := o.up(ctx); err != nil {
		return err
	}
	n := o.opts.open
	blocked := min(blockedTop, n/4)
	spread := blocked / 8 // stand between the silent ones
	began := time.Now()
	silent := n - blocked
	o.submit(ctx, silent+spread, func(i int) bool {
		return spread > 0 && i%((silent+spread)/spread) == 0 && i/((silent+spread)/spread) < spread
	})
	if err := o.await(ctx, fillTimeout, func() bool { accepted, _ := o.agents.holding(); return accepted >= silent }); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	o.submit(ctx, blocked-spread, func(int) bool { return true })
	pause(ctx, time.Second) // as many as may be are given out
	accepted, connections := o.agents.holding()
	o.r.add("filled in, s", "%.1f", time.Since(began).Seconds())
	o.r.add("open when it is killed", "%d: %d accepted by agents, %d sent, %d not given out",
		len(o.ledger.all()), accepted, connections, len(o.ledger.all())-accepted-connections)
	o.r.add("RSS before, MiB", "%.0f", o.router.rss())
	return o.crash()
}

// submit posts n requests; blocks says which go to the agent that does not answer.
func (o *opened) submit(ctx context.Context, n int, blocks func(i int) bool) {
	base := len(o.ledger.all())
	run.ForEach(ctx, submitters, n, func(ctx context.Context, i int) {
		prompt := laterPrompt
		if blocks(i) {
			prompt = plainPrompt
		}
		order := newOrder(fmt.Sprintf(prompt, base+i), "", silentTime*1000, true, 1)
		for !o.callers.post(ctx, order) && pause(ctx, betweenTries) {
		}
	})
}

func (o *opened) await(ctx context.Context, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		if !pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// takeOver starts the next router and notes when it does what.
func (o *opened) takeOver(ctx context.Context) error {
	held := o.agents.release()
	var sent atomic.Int64 // when the first task went out
	o.agents.onNext(func(at time.Time) { sent.Store(at.UnixNano()) })
	var called atomic.Int64 // when the first result was accepted
	probe := run.New(ctx)
	probe.Go("first callback", func(ctx context.Context) error {
		if o.agents.deliver(ctx, &held[0], o.agents.newMark(laterAgent)) {
			called.Store(time.Now().UnixNano())
		}
		return nil
	})
	if err := o.up(ctx); err != nil {
		return errors.Join(err, stopped(probe))
	}
	p := o.router
	taken, err := p.until(ctx, markTakenOver, workTimeout)
	if err != nil {
		return errors.Join(err, stopped(probe))
	}
	o.r.add("RSS when all are taken over, MiB", "%.0f", p.rss())
	err = o.await(ctx, workTimeout, func() bool { return sent.Load() > 0 && called.Load() > 0 })
	since := func(at int64) time.Duration { return time.Unix(0, at).Sub(p.began) }
	o.r.add("start to listening, ms", "%s", inMillis(o.starts[len(o.starts)-1]))
	o.r.add("start to the first task given out again, ms", "%s", inMillis(since(sent.Load())))
	o.r.add("start to the first result accepted by callback, ms", "%s", inMillis(since(called.Load())))
	o.r.add("start until all were taken over, ms", "%s", inMillis(taken))
	return errors.Join(err, stopped(probe))
}

func stopped(g *run.Group) error {
	g.Stop(nil)
	return g.Wait()
}

// finish has every agent deliver and every request end.
func (o *opened) finish(ctx context.Context) error {
	began := time.Now()
	held := o.agents.release()[1:]
	run.ForEach(ctx, submitters, len(held), func(ctx context.Context, i int) {
		o.agents.deliver(ctx, &held[i], o.agents.newMark(laterAgent))
	})
	o.r.add("until agents had delivered the rest, s", "%.1f", time.Since(began).Seconds())
	o.settle(ctx, max(o.opts.settle, workTimeout))
	o.r.add("until all had ended, s", "%.1f", time.Since(began).Seconds())
	o.look(ctx, o.ledger.all())
	return ctx.Err()
}
