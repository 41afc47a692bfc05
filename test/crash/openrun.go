package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

const (
	concurrentSubmitters = 64
	maxBlocked           = 512  // requests whose agent does not answer
	silentSeconds        = 3600 // timeout of the silent agents
	fillTimeout          = 5 * time.Minute
	resumeTimeout        = 2 * time.Minute
	retryDelay           = 30 * time.Millisecond // between attempts to submit a request
)

// openRun is the last part: many requests are open when the router is killed.
type openRun struct {
	*testbed
	report *workload.Report
}

// runOpen kills a router with many open requests, and measures the start of the next.
func runOpen(ctx context.Context, n int, cfg testbedConfig) (_ *workload.Report, err error) {
	w, err := newTestbed(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	o := &openRun{testbed: w, report: &workload.Report{
		Title: fmt.Sprintf("%d requests open when the router is killed; %d CPUs", n, runtime.NumCPU()),
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
	if err := o.startRouters(ctx); err != nil {
		return err
	}
	blocked := min(maxBlocked, n/4)
	silent := n - blocked
	o.submitRequests(ctx, workload.AsyncPrompt, silent)
	if !workload.AwaitCondition(ctx, fillTimeout, func() bool { return o.agents.CountHeld() >= silent }) {
		return fmt.Errorf("agents accepted %d of %d tasks within %s", o.agents.CountHeld(), silent, fillTimeout)
	}
	o.submitRequests(ctx, workload.PlainPrompt, blocked)
	resilience.Sleep(ctx, time.Second) // the router dispatches as many as its limit allows
	o.report.AddFigure("open when the router is killed, accepted by agents", "%d, %d", len(o.ledger.OpenRequests()), o.agents.CountHeld())
	return o.killRouter()
}

// submitRequests submits n requests with the prompt, whose agents hold their answers.
func (o *openRun) submitRequests(ctx context.Context, prompt string, n int) {
	run.ForEach(ctx, concurrentSubmitters, n, func(ctx context.Context, i int) {
		order := workload.NewOrder(fmt.Sprintf(prompt, i), "", silentSeconds*1000, true)
		for !o.load.Callers.SubmitOrder(ctx, order) && resilience.Sleep(ctx, retryDelay) {
		}
	})
}

// measureResume starts the next router and measures how soon it resumes the requests.
// Meanwhile one agent tries to deliver its result.
func (o *openRun) measureResume(ctx context.Context) error {
	held := o.agents.ReleaseHeld()
	o.group.Go("first callback", func(ctx context.Context) error {
		o.agents.DeliverResult(ctx, &held[0], o.agents.NewMark(workload.AsyncAgent))
		return nil
	})
	if err := o.startRouters(ctx); err != nil {
		return err
	}
	resumed, err := o.replicas[0].Process.WaitForLog(ctx, process.LogResumed, resumeTimeout)
	if err != nil {
		return err
	}
	started := o.replicas[0].Process.Started
	var dispatched, delivered time.Time
	if !workload.AwaitCondition(ctx, resumeTimeout, func() bool {
		dispatched, delivered = o.ledger.FirstAfter(started)
		return !dispatched.IsZero() && !delivered.IsZero()
	}) {
		return fmt.Errorf("no task was dispatched again, or no result accepted, within %s", resumeTimeout)
	}
	o.report.AddFigure("start to listening, ms", "%d", o.replicas[0].StartTimes[1].Milliseconds())
	o.report.AddFigure("start to the first task dispatched again, ms", "%d", dispatched.Sub(started).Milliseconds())
	o.report.AddFigure("start to the first result accepted by callback, ms", "%d", delivered.Sub(started).Milliseconds())
	o.report.AddFigure("start until all were resumed, ms", "%d", resumed.Milliseconds())
	return nil
}

// finishRequests delivers all results and waits until all requests have ended.
func (o *openRun) finishRequests(ctx context.Context) error {
	began := time.Now()
	held := o.agents.ReleaseHeld()[1:]
	run.ForEach(ctx, concurrentSubmitters, len(held), func(ctx context.Context, i int) {
		o.agents.DeliverResult(ctx, &held[i], o.agents.NewMark(workload.AsyncAgent))
	})
	o.load.AwaitEnds(ctx, resumeTimeout)
	o.report.AddFigure("time to deliver the other results until all had ended, s", "%.1f", time.Since(began).Seconds())
	o.load.FetchAll(ctx)
	return ctx.Err()
}
