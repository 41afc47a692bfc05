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
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	concurrentSubmitters = 64
	maxBlocked           = 512  // requests whose agent does not answer
	silentSeconds        = 3600 // timeout of the silent agents
	baselineStarts       = 5
	fillTimeout          = 5 * time.Minute
	resumeTimeout        = 2 * time.Minute
)

// openRun is the second part: many requests are open when the router is killed.
type openRun struct {
	*testbed
	opts   options
	report *report
}

// runOpen kills a router with many open requests, and measures the start of the next.
func runOpen(ctx context.Context, at workspace, opts options) (_ *report, err error) {
	o := &openRun{opts: opts, report: &report{title: fmt.Sprintf("%d requests open when the router is killed; %d CPUs", opts.openRequests, runtime.NumCPU())}}
	if err := o.measureBaseline(ctx, at); err != nil {
		return nil, err
	}
	if at, err = at.subdir("open"); err != nil {
		return nil, err
	}
	if o.testbed, err = newTestbed(ctx, at, opts.seed); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	for _, step := range []func(context.Context) error{o.openRequests, o.measureResume, o.finishRequests} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	o.report.checks = o.runChecks(ctx)
	o.ledger.addFigures(o.report)
	o.report.addFigure("errors logged by the routers", "%s", process.FormatCounts(o.loggedErrors))
	return o.report, nil
}

// measureBaseline measures the start of a router without requests.
func (o *openRun) measureBaseline(ctx context.Context, at workspace) (err error) {
	at, err = at.subdir("baseline")
	if err != nil {
		return err
	}
	w, err := newTestbed(ctx, at, o.opts.seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for range baselineStarts + 1 {
		if err := errors.Join(w.killRouter(), w.startRouter(ctx)); err != nil {
			return err
		}
	}
	again := slices.Sorted(slices.Values(w.startTimes[1:]))
	o.report.addFigure("baseline: start to listening, no requests, ms: first, then p50, max", "%s, %s, %s",
		formatMillis(w.startTimes[0]), formatMillis(again[len(again)/2]), formatMillis(again[len(again)-1]))
	o.report.addFigure("baseline: RSS when it listens, MiB", "%.0f", w.router.RSSMiB())
	return nil
}

// openRequests submits the requests. Most are accepted by an agent that stays silent.
// Some block their agent, more than execute at a time, so that the rest is stored and
// not dispatched.
func (o *openRun) openRequests(ctx context.Context) error {
	if err := o.startRouter(ctx); err != nil {
		return err
	}
	n := o.opts.openRequests
	blocked := min(maxBlocked, n/4)
	spread := blocked / 8 // spread evenly among the silent ones
	began := time.Now()
	silent := n - blocked
	o.submitRequests(ctx, silent+spread, func(i int) bool {
		return spread > 0 && i%((silent+spread)/spread) == 0 && i/((silent+spread)/spread) < spread
	})
	if err := o.awaitCondition(ctx, fillTimeout, func() bool { accepted, _ := o.agents.countHeld(); return accepted >= silent }); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	o.submitRequests(ctx, blocked-spread, func(int) bool { return true })
	process.Sleep(ctx, time.Second) // the router dispatches as many as its limit allows
	accepted, connections := o.agents.countHeld()
	o.report.addFigure("time to submit, s", "%.1f", time.Since(began).Seconds())
	o.report.addFigure("open when the router is killed", "%d: %d accepted by agents, %d sent, %d not dispatched",
		len(o.ledger.allRequests()), accepted, connections, len(o.ledger.allRequests())-accepted-connections)
	o.report.addFigure("RSS before, MiB", "%.0f", o.router.RSSMiB())
	return o.killRouter()
}

// submitRequests submits n requests; blocks selects those for the agent that does not
// answer.
func (o *openRun) submitRequests(ctx context.Context, n int, blocks func(i int) bool) {
	base := len(o.ledger.allRequests())
	run.ForEach(ctx, concurrentSubmitters, n, func(ctx context.Context, i int) {
		prompt := asyncPrompt
		if blocks(i) {
			prompt = plainPrompt
		}
		order := newOrder(fmt.Sprintf(prompt, base+i), "", silentSeconds*1000, true, 1)
		for !o.callers.submitOrder(ctx, order) && process.Sleep(ctx, retryDelay) {
		}
	})
}

func (o *openRun) awaitCondition(ctx context.Context, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		if !process.Sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// measureResume starts the next router and measures how soon it resumes the requests.
func (o *openRun) measureResume(ctx context.Context) error {
	held := o.agents.releaseHeld()
	var sent atomic.Int64 // time of the first task, in ns
	o.agents.notifyNextExecution(func(at time.Time) { sent.Store(at.UnixNano()) })
	var called atomic.Int64 // time of the first accepted result, in ns
	probe := run.New(ctx)
	probe.Go("first callback", func(ctx context.Context) error {
		if o.agents.deliverResult(ctx, &held[0], o.agents.newMark(asyncAgent)) {
			called.Store(time.Now().UnixNano())
		}
		return nil
	})
	if err := o.startRouter(ctx); err != nil {
		return errors.Join(err, stopGroup(probe))
	}
	p := o.router
	taken, err := p.WaitForLog(ctx, process.LogResumed, resumeTimeout)
	if err != nil {
		return errors.Join(err, stopGroup(probe))
	}
	o.report.addFigure("RSS when all are resumed, MiB", "%.0f", p.RSSMiB())
	err = o.awaitCondition(ctx, resumeTimeout, func() bool { return sent.Load() > 0 && called.Load() > 0 })
	since := func(at int64) time.Duration { return time.Unix(0, at).Sub(p.Started) }
	o.report.addFigure("start to listening, ms", "%s", formatMillis(o.startTimes[len(o.startTimes)-1]))
	o.report.addFigure("start to the first task dispatched again, ms", "%s", formatMillis(since(sent.Load())))
	o.report.addFigure("start to the first result accepted by callback, ms", "%s", formatMillis(since(called.Load())))
	o.report.addFigure("start until all were resumed, ms", "%s", formatMillis(taken))
	return errors.Join(err, stopGroup(probe))
}

func stopGroup(g *run.Group) error {
	g.Stop(nil)
	return g.Wait()
}

// finishRequests delivers all results and waits until all requests have ended.
func (o *openRun) finishRequests(ctx context.Context) error {
	began := time.Now()
	held := o.agents.releaseHeld()[1:]
	run.ForEach(ctx, concurrentSubmitters, len(held), func(ctx context.Context, i int) {
		o.agents.deliverResult(ctx, &held[i], o.agents.newMark(asyncAgent))
	})
	o.report.addFigure("time to deliver the other results, s", "%.1f", time.Since(began).Seconds())
	o.awaitEnds(ctx, max(o.opts.endTimeout, resumeTimeout))
	o.report.addFigure("time until all had ended, s", "%.1f", time.Since(began).Seconds())
	o.fetchRequests(ctx, o.ledger.allRequests())
	return ctx.Err()
}
