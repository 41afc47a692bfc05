package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/test/internal/process"
)

type output struct{ report, progress io.Writer }

// releaseTimeout is how long the router may take to release resources after callers
// have disconnected.
const releaseTimeout = 20 * time.Second

// runAll runs all measurements and prints the report. It returns an error if there
// were failures or a measurement could not run.
func runAll(ctx context.Context, opts options, out output) (err error) {
	if err := opts.validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "caprouter-overload-")
	if err != nil {
		return err
	}
	if opts.keep {
		fmt.Fprintln(out.report, "directory:", dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	w := &testbed{opts: opts, dir: dir, measurer: &measurer{progress: out.progress, connections: opts.connections}, failures: &failureLog{}}
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	if err := w.startProcesses(ctx); err != nil {
		return err
	}
	r := &report{opts: opts}
	for _, part := range []func(context.Context, *report) error{w.measureBaseline, w.measureRoutes, w.measureSlow, w.measureDryRuns} {
		if err := part(ctx, r); err != nil {
			return err
		}
	}
	w.finishRun(ctx, r)
	r.printTo(out.report)
	if len(r.failures) > 0 {
		return fmt.Errorf("%d failures", r.failureCount)
	}
	return nil
}

// testbed contains the processes of a run.
type testbed struct {
	opts     options
	dir      string
	measurer *measurer
	failures *failureLog

	agent, bare, router *process.Process
	initialUsage        resourceUsage // of the router before any load
	usageLines          []string
}

// startProcesses starts all processes. close stops them.
func (w *testbed) startProcesses(ctx context.Context) (err error) {
	binary := w.opts.binary
	if binary == "" {
		w.measurer.logProgress("building the router")
		if binary, err = process.Build(ctx, w.dir); err != nil {
			return err
		}
	}
	if w.agent, err = startRole(ctx, roleAgent, w.opts); err != nil {
		return err
	}
	if w.bare, err = startRole(ctx, roleBaseline, w.opts); err != nil {
		return err
	}
	config, err := writeConfig(w.dir, w.agent.Addr(), w.opts.inFlight)
	if err != nil {
		return err
	}
	if w.router, err = process.StartRouter(ctx, binary, config); err != nil {
		return err
	}
	w.initialUsage, err = fetchUsage(ctx, w.router.Addr())
	w.usageLines = append(w.usageLines, "before the load: "+w.initialUsage.String())
	return err
}

func (w *testbed) close(ctx context.Context) error {
	var errs []error
	for _, p := range []**process.Process{&w.router, &w.bare, &w.agent} {
		if *p != nil {
			errs = append(errs, (*p).Stop(ctx))
			*p = nil
		}
	}
	return errors.Join(errs...)
}

func (w *testbed) newSubject(name string, p *process.Process, body string, want contract.Status) *subject {
	return &subject{name: name, addr: p.Addr(), request: formatPost(routePath, body), want: want, failures: w.failures}
}

// cpuConsumers returns the processes whose CPU time is reported. This process is the
// callers.
func cpuConsumers(servers ...*process.Process) []cpuConsumer {
	all := []cpuConsumer{{"callers", os.Getpid()}}
	for _, p := range servers {
		all = append(all, cpuConsumer{p.Name, p.PID()})
	}
	return all
}

// measureBaseline measures the bare server for a quarter of the duration.
func (w *testbed) measureBaseline(ctx context.Context, r *report) (err error) {
	s := w.newSubject("bare server", w.bare, routeBody, contract.StatusCompleted)
	r.floor, err = w.measurer.measureSubject(ctx, s, planPhases(w.opts.duration/4), cpuConsumers(w.bare))
	return err
}

func (w *testbed) measureRoutes(ctx context.Context, r *report) (err error) {
	s := w.newSubject("router", w.router, routeBody, contract.StatusCompleted)
	if r.routes, err = w.measurer.measureSubject(ctx, s, planPhases(w.opts.duration), cpuConsumers(w.router, w.agent)); err != nil {
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
		got, err := w.measurer.measureSlow(ctx, s, k, w.opts.slow, r.routes.halfRate, w.opts.duration)
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
	if r.dry, err = w.measurer.measureSubject(ctx, s, planPhases(w.opts.duration/4), cpuConsumers(w.router)); err != nil {
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
		kept := now.checkReleased(w.initialUsage, w.opts.inFlight)
		if kept == nil || time.Since(began) > releaseTimeout {
			w.usageLines = append(w.usageLines, when+": "+now.String())
			if kept != nil {
				w.failures.record("the router %s: %v", when, kept)
			}
			return nil
		}
		if !process.Sleep(ctx, windowStep) {
			return ctx.Err()
		}
	}
}

// finishRun stops the router and completes the report.
func (w *testbed) finishRun(ctx context.Context, r *report) {
	if size, err := directorySize(ctx, filepath.Join(w.dir, "data")); err == nil {
		w.usageLines = append(w.usageLines, fmt.Sprintf("on disk at the end: %.0f MiB", float64(size)/(1<<20)))
	}
	log := w.router.Log
	if err := w.close(ctx); err != nil {
		w.failures.record("%v", err)
	}
	r.usageLines, r.loggedErrors = w.usageLines, log.Errors()
	r.failureCount, r.failures = w.failures.list()
}

func directorySize(ctx context.Context, dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return nil // the file was deleted in the meantime
	})
	return size, err
}
