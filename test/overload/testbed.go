package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/test/internal/process"
)

// releaseTimeout is how long the router may take to release resources after callers
// have disconnected.
const releaseTimeout = 20 * time.Second

// runAll runs all measurements and prints the report. It returns an error if there
// were failures or a measurement could not run.
func runAll(ctx context.Context, opts options, out io.Writer) (err error) {
	if err := opts.validate(); err != nil {
		return err
	}
	dir, remove, err := process.MakeRunDir("overload", opts.keep, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	w := &testbed{opts: opts, dir: dir, failures: &failureLog{}}
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	if err := w.startProcesses(ctx); err != nil {
		return err
	}
	r := &report{slowConnections: opts.slow}
	for _, part := range opts.parts() {
		before := readCPUTimes(w.processes())
		for _, measure := range part.measure {
			if err := measure(w, ctx, r); err != nil {
				return err
			}
		}
		r.foreignCPU = max(r.foreignCPU, readCPUTimes(w.processes()).foreignShare(before))
	}
	w.finishRun(ctx, r)
	r.printTo(out)
	if len(r.failures) > 0 {
		return fmt.Errorf("%d failures", r.failureCount)
	}
	return nil
}

// testbed contains the processes of a run.
type testbed struct {
	opts     options
	dir      string
	failures *failureLog

	binary              string
	agent, bare, router *process.Process
	others              []*process.Process // routers of single parts
	initialUsage        resourceUsage      // of the router before any load
}

// startProcesses starts all processes. close stops them.
func (w *testbed) startProcesses(ctx context.Context) (err error) {
	w.binary = w.opts.binary
	if w.binary == "" {
		logProgress("building the router")
		if w.binary, err = process.Build(ctx, w.dir); err != nil {
			return err
		}
	}
	if w.agent, err = process.StartRole(ctx, roleAgent, roleAgent); err != nil {
		return err
	}
	if w.bare, err = process.StartRole(ctx, roleBaseline, roleBaseline); err != nil {
		return err
	}
	config, err := writeConfig(w.dir, w.agent.Addr())
	if err != nil {
		return err
	}
	if w.router, err = process.StartRouter(ctx, w.binary, config); err != nil {
		return err
	}
	w.initialUsage, err = fetchUsage(ctx, w.router.Addr())
	return err
}

// processes returns the processes that run.
func (w *testbed) processes() []*process.Process {
	return append([]*process.Process{w.agent, w.bare, w.router}, w.others...)
}

func (w *testbed) close(ctx context.Context) error {
	var errs []error
	for _, p := range w.others {
		errs = append(errs, p.Stop(ctx))
	}
	w.others = nil
	for _, p := range []**process.Process{&w.router, &w.bare, &w.agent} {
		if *p != nil {
			errs = append(errs, (*p).Stop(ctx))
			*p = nil
		}
	}
	return errors.Join(errs...)
}

func (w *testbed) newSubject(name string, p *process.Process, body string, want contract.Status) *subject {
	return &subject{name: name, addr: p.Addr(), requests: [][]byte{formatPost(routePath, body)}, want: want, connections: maxConnections, failures: w.failures}
}

// measureBaseline measures the bare server for a quarter of the duration.
func (w *testbed) measureBaseline(ctx context.Context, r *report) (err error) {
	s := w.newSubject("bare server", w.bare, routeBody, contract.StatusCompleted)
	r.baseline, err = s.measure(ctx, w.opts.duration/4)
	return err
}

func (w *testbed) measureRoutes(ctx context.Context, r *report) (err error) {
	s := w.newSubject("router", w.router, routeBody, contract.StatusCompleted)
	if r.routes, err = s.measure(ctx, w.opts.duration); err != nil {
		return err
	}
	return w.awaitRelease(ctx, "after the overload")
}

// measureSlow measures other callers beside each kind of slow connections.
func (w *testbed) measureSlow(ctx context.Context, r *report) error {
	if w.opts.slow == 0 {
		return nil
	}
	s := w.newSubject("router", w.router, routeBody, contract.StatusCompleted)
	for _, k := range slowKinds() {
		got, err := s.measureSlow(ctx, k, w.opts.slow, r.routes.peak/2, w.opts.duration)
		if err != nil {
			return err
		}
		r.slow = append(r.slow, got)
		if err := w.awaitRelease(ctx, "after slow "+k.name); err != nil {
			return err
		}
	}
	return nil
}

// measureDryRuns measures requests without an agent, which only the CPUs limit.
func (w *testbed) measureDryRuns(ctx context.Context, r *report) (err error) {
	s := w.newSubject("dry runs", w.router, dryRunBody, contract.StatusAccepted)
	if r.dry, err = s.measure(ctx, w.opts.duration/4); err != nil {
		return err
	}
	return w.awaitRelease(ctx, "after dry runs")
}

// awaitRelease waits until the router has released the resources of disconnected
// callers.
func (w *testbed) awaitRelease(ctx context.Context, when string) error {
	if err := w.router.CheckRunning(); err != nil {
		return err
	}
	began := time.Now()
	for {
		now, err := fetchUsage(ctx, w.router.Addr())
		if err != nil {
			return err
		}
		kept := now.checkReleased(w.initialUsage)
		if kept == nil || time.Since(began) > releaseTimeout {
			if kept != nil {
				w.failures.record("the router %s: %v", when, kept)
			}
			return nil
		}
		if !resilience.Sleep(ctx, windowStep) {
			return ctx.Err()
		}
	}
}

// finishRun stops the router, judges the measurements and completes the report.
func (w *testbed) finishRun(ctx context.Context, r *report) {
	for _, broken := range r.judge() {
		w.failures.record("%s", broken)
	}
	if err := w.close(ctx); err != nil {
		w.failures.record("%v", err)
	}
	r.failureCount, r.failures = w.failures.list()
}
