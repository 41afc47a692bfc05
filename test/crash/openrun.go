package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	concurrentSubmitters = 64
	maxBlocked           = 512  // requests whose agent does not answer
	silentSeconds        = 3600 // timeout of the silent agents
	fillTimeout          = 5 * time.Minute
	resumeTimeout        = 2 * time.Minute
)

// openRun is the last part: many requests are open when the router is killed.
type openRun struct {
	*testbed
	report *report
}

// runOpen kills a router with many open requests, and measures the start of the next.
func runOpen(ctx context.Context, n int, cfg testbedConfig) (_ *report, err error) {
	w, err := newTestbed(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	o := &openRun{testbed: w, report: &report{
		title: fmt.Sprintf("%d requests open when the router is killed; %d CPUs", n, runtime.NumCPU()),
	}}
	if err := o.openRequests(ctx, n); err != nil {
		return nil, err
	}
	if err := o.measureResume(ctx); err != nil {
		return nil, err
	}
	if err := o.finishRequests(ctx); err != nil {
		return nil, err
	}
	return o.report, o.runChecks(ctx, o.report)
}

// openRequests submits n requests, then kills the router. Most are accepted by an agent
// that stays silent. The last ones block their agent, more than execute at a time, so
// that the rest is stored and not dispatched.
func (o *openRun) openRequests(ctx context.Context, n int) error {
	if err := o.startRouter(ctx); err != nil {
		return err
	}
	blocked := min(maxBlocked, n/4)
	silent := n - blocked
	o.submitRequests(ctx, asyncPrompt, silent)
	if !awaitCondition(ctx, fillTimeout, func() bool { return o.agents.countHeld() >= silent }) {
		return fmt.Errorf("agents accepted %d of %d tasks within %s", o.agents.countHeld(), silent, fillTimeout)
	}
	o.submitRequests(ctx, plainPrompt, blocked)
	process.Sleep(ctx, time.Second) // the router dispatches as many as its limit allows
	o.report.addFigure("open when the router is killed, accepted by agents", "%d, %d", len(o.ledger.openRequests()), o.agents.countHeld())
	return o.killRouter()
}

// submitRequests submits n requests with the prompt, whose agents hold their answers.
func (o *openRun) submitRequests(ctx context.Context, prompt string, n int) {
	run.ForEach(ctx, concurrentSubmitters, n, func(ctx context.Context, i int) {
		order := newOrder(fmt.Sprintf(prompt, i), "", silentSeconds*1000, true)
		for !o.callers.submitOrder(ctx, order) && process.Sleep(ctx, retryDelay) {
		}
	})
}

// measureResume starts the next router and measures how soon it resumes the requests.
// Meanwhile one agent tries to deliver its result.
func (o *openRun) measureResume(ctx context.Context) error {
	held := o.agents.releaseHeld()
	o.group.Go("first callback", func(ctx context.Context) error {
		o.agents.deliverResult(ctx, &held[0], o.agents.newMark(asyncAgent))
		return nil
	})
	if err := o.startRouter(ctx); err != nil {
		return err
	}
	resumed, err := o.router.WaitForLog(ctx, process.LogResumed, resumeTimeout)
	if err != nil {
		return err
	}
	started := o.router.Started
	var dispatched, delivered time.Time
	if !awaitCondition(ctx, resumeTimeout, func() bool {
		dispatched, delivered = o.ledger.firstAfter(started)
		return !dispatched.IsZero() && !delivered.IsZero()
	}) {
		return fmt.Errorf("no task was dispatched again, or no result accepted, within %s", resumeTimeout)
	}
	o.report.addFigure("start to listening, ms", "%d", o.startTimes[len(o.startTimes)-1].Milliseconds())
	o.report.addFigure("start to the first task dispatched again, ms", "%d", dispatched.Sub(started).Milliseconds())
	o.report.addFigure("start to the first result accepted by callback, ms", "%d", delivered.Sub(started).Milliseconds())
	o.report.addFigure("start until all were resumed, ms", "%d", resumed.Milliseconds())
	return nil
}

// finishRequests delivers all results and waits until all requests have ended.
func (o *openRun) finishRequests(ctx context.Context) error {
	began := time.Now()
	held := o.agents.releaseHeld()[1:]
	run.ForEach(ctx, concurrentSubmitters, len(held), func(ctx context.Context, i int) {
		o.agents.deliverResult(ctx, &held[i], o.agents.newMark(asyncAgent))
	})
	o.awaitEnds(ctx, resumeTimeout)
	o.report.addFigure("time to deliver the other results until all had ended, s", "%.1f", time.Since(began).Seconds())
	o.fetchRequests(ctx, o.ledger.allRequests())
	return ctx.Err()
}
