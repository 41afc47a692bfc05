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
)

// output is where the figures go, and what shows how far the run is.
type output struct{ report, progress io.Writer }

// cleanUp is how long a router may take to let go of what callers left behind.
const cleanUp = 20 * time.Second

// overload runs everything and prints the figures. The error says that something
// was wrong, or that it could not be measured.
func overload(ctx context.Context, opts options, out output) (err error) {
	if err := opts.check(); err != nil {
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
	w := &world{opts: opts, dir: dir, m: &measurer{progress: out.progress, connections: opts.connections}, wrong: &wrongs{}}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.start(ctx); err != nil {
		return err
	}
	r := &report{opts: opts}
	for _, part := range []func(context.Context, *report) error{w.floor, w.routes, w.slow, w.dryRuns} {
		if err := part(ctx, r); err != nil {
			return err
		}
	}
	w.end(ctx, r)
	r.print(out.report)
	if len(r.wrong) > 0 {
		return fmt.Errorf("%d things were wrong that are no figures", r.wrongs)
	}
	return nil
}

// world is every process of a run.
type world struct {
	opts  options
	dir   string
	m     *measurer
	wrong *wrongs

	agent, bare, router *process
	before              holding // what the router held at first
	held                []string
}

// start starts the processes: close ends them.
func (w *world) start(ctx context.Context) error {
	binary := w.opts.binary
	if binary == "" {
		w.m.say("building the router")
		var err error
		if binary, err = build(ctx, w.dir); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if w.agent, err = startRole(ctx, self, roleAgent, w.opts); err != nil {
		return err
	}
	if w.bare, err = startRole(ctx, self, roleFloor, w.opts); err != nil {
		return err
	}
	config, err := writeConfig(w.dir, w.agent.addr, w.opts.inFlight)
	if err != nil {
		return err
	}
	if w.router, err = startRouter(ctx, binary, config); err != nil {
		return err
	}
	w.before, err = askHolding(ctx, w.router.addr)
	w.held = append(w.held, "at first: "+w.before.String())
	return err
}

func (w *world) close() error {
	var errs []error
	for _, p := range []**process{&w.router, &w.bare, &w.agent} {
		if *p != nil {
			errs = append(errs, (*p).stop())
			*p = nil
		}
	}
	return errors.Join(errs...)
}

func (w *world) subject(name string, p *process, body string, want contract.Status) *subject {
	return &subject{name: name, addr: p.addr, request: post(routePath, body), want: want, wrong: w.wrong}
}

// consumers are those whose CPU time is told: the callers are this process.
func consumers(servers ...*process) []consumer {
	all := []consumer{{"callers", os.Getpid()}}
	for _, p := range servers {
		all = append(all, consumer{p.name, p.cmd.Process.Pid})
	}
	return all
}

// floor measures the bare server, for a quarter of the time.
func (w *world) floor(ctx context.Context, r *report) (err error) {
	s := w.subject("bare server", w.bare, routeBody, contract.StatusCompleted)
	r.floor, err = w.m.measure(ctx, s, planOf(w.opts.lasts/4), consumers(w.bare))
	return err
}

func (w *world) routes(ctx context.Context, r *report) (err error) {
	s := w.subject("router", w.router, routeBody, contract.StatusCompleted)
	if r.routes, err = w.m.measure(ctx, s, planOf(w.opts.lasts), consumers(w.router, w.agent)); err != nil {
		return err
	}
	return w.calmDown(ctx, "after the overload")
}

// slow measures ordinary callers beside slow connections of each kind.
func (w *world) slow(ctx context.Context, r *report) error {
	if w.opts.slow == 0 {
		return nil
	}
	s := w.subject("router", w.router, routeBody, contract.StatusCompleted)
	for _, k := range slowKinds() {
		got, err := w.m.slow(ctx, s, k, w.opts.slow, r.routes.calmRate, w.opts.lasts)
		if err != nil {
			return err
		}
		r.slow = append(r.slow, got)
		if err := w.calmDown(ctx, "after slow "+k.name); err != nil {
			return err
		}
	}
	return nil
}

// dryRuns measures what needs no agent and ends in the CPUs.
func (w *world) dryRuns(ctx context.Context, r *report) (err error) {
	s := w.subject("dry runs", w.router, dryRunBody, contract.StatusAccepted)
	if r.dry, err = w.m.measure(ctx, s, planOf(w.opts.lasts/4), consumers(w.router)); err != nil {
		return err
	}
	return w.calmDown(ctx, "after dry runs")
}

// calmDown waits until the router has let go of what callers left behind.
func (w *world) calmDown(ctx context.Context, when string) error {
	if err := w.router.ended(); err != nil {
		return err
	}
	began := time.Now()
	for {
		now, err := askHolding(ctx, w.router.addr)
		if err != nil {
			return err
		}
		kept := now.back(w.before, w.opts.inFlight)
		if kept == nil || time.Since(began) > cleanUp {
			w.held = append(w.held, when+": "+now.String())
			if kept != nil {
				w.wrong.add("the router %s: %v", when, kept)
			}
			return nil
		}
		if !pause(ctx, step) {
			return ctx.Err()
		}
	}
}

// end stops the router and gathers what is to be said of the whole run.
func (w *world) end(ctx context.Context, r *report) {
	if size, err := sizeOf(ctx, filepath.Join(w.dir, "data")); err == nil {
		w.held = append(w.held, fmt.Sprintf("on disk at the end: %.0f MiB", float64(size)/(1<<20)))
	}
	log := w.router.log
	if err := w.close(); err != nil {
		w.wrong.add("%v", err)
	}
	r.held, r.complaints = w.held, log.complaints()
	r.wrongs, r.wrong = w.wrong.all()
}

// sizeOf adds up the files of a directory.
func sizeOf(ctx context.Context, dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return nil // a file may go while we look
	})
	return size, err
}
