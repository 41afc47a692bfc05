package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

const (
	maxOrders      = 6                      // per caller and cycle
	maxStartTime   = 150 * time.Millisecond // of a router that is killed during its start
	maxLifetime    = 400 * time.Millisecond // of the other routers
	maxServerPause = 300 * time.Millisecond // for which the external store is down
)

// cycleRun is a part with routers that live for less than a second.
type cycleRun struct {
	*testbed
	earlyKills int // routers killed during their start
}

// runCycles runs n cycles, and one more that ends with a graceful shutdown.
func runCycles(ctx context.Context, title string, n int, cfg testbedConfig) (_ *workload.Report, err error) {
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
			err = c.runCycle(ctx, func() error { c.stopRouters(ctx); return nil })
		}
		if err != nil {
			return nil, fmt.Errorf("cycle %d: %w", i+1, err)
		}
	}
	if err := c.finishRun(ctx); err != nil {
		return nil, err
	}
	r := &workload.Report{Title: fmt.Sprintf("%s: %d cycles, %d routers also killed during the start; seed %d", title, n, c.earlyKills, cfg.seed)}
	if err := c.runChecks(ctx, r); err != nil {
		return nil, err
	}
	startTimes := c.startTimes()
	slices.Sort(startTimes)
	r.AddFigure("start to listening, ms: p50, max", "%d, %d",
		startTimes[len(startTimes)/2].Milliseconds(), startTimes[len(startTimes)-1].Milliseconds())
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
	resilience.Sleep(ctx, c.rng.DurationUpTo(maxServerPause))
	return c.server.start(ctx)
}

// runCycle starts a router if none runs, uses it and calls end. One of eight routers
// before is killed during its start.
func (c *cycleRun) runCycle(ctx context.Context, end func() error) error {
	for _, r := range c.replicas {
		if r.Process == nil && c.rng.OneIn(8) {
			c.earlyKills++
			if err := c.killDuringStart(ctx, r); err != nil {
				return err
			}
		}
	}
	if err := c.startRouters(ctx); err != nil {
		return err
	}
	lives, over := context.WithCancel(ctx)
	defer over()
	var killed error
	run.ForEach(ctx, 2, 2, func(ctx context.Context, i int) {
		if i == 0 {
			defer over()
			resilience.Sleep(ctx, c.rng.DurationUpTo(maxLifetime))
			killed = end()
		} else {
			c.load.Run(ctx, lives)
		}
	})
	return errors.Join(killed, ctx.Err())
}

func (c *cycleRun) killDuringStart(ctx context.Context, r *workload.Replica) error {
	p, err := process.LaunchRouter(ctx, r.Binary, r.Config)
	if err != nil {
		return err
	}
	resilience.Sleep(ctx, c.rng.DurationUpTo(maxStartTime))
	return c.killProcess(p)
}

// fillStore sends as many long requests as a small store contains.
func (c *cycleRun) fillStore(ctx context.Context) error {
	if c.maxBytes == "" {
		return nil
	}
	if err := c.startRouters(ctx); err != nil {
		return err
	}
	c.load.FillStore(ctx)
	return ctx.Err()
}

// finishRun waits until all requests have ended, then checks that the results survive
// another kill.
func (c *cycleRun) finishRun(ctx context.Context) error {
	if err := c.startRouters(ctx); err != nil {
		return err
	}
	c.load.Finish(ctx)
	if err := c.killAll(); err != nil {
		return err
	}
	if err := c.startRouters(ctx); err != nil {
		return err
	}
	c.load.FetchFromEach(ctx, c.replicas)
	return ctx.Err()
}
