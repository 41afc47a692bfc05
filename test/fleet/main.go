// Command fleet measures a router with thousands of agents that register themselves:
// requests are routed while agents join, all agents send heartbeats, and the registry
// file is reloaded. `make fleet` runs it.
//
//	callers ────────── requests ─────────▶ caprouter serve ──tasks──▶ agent
//	agents ─── PUT, POST …/heartbeat ────▶   │    ▲
//	                                         │    └─ registry file: grants, reloaded
//	                                         └──▶ model, which counts its calls
//
// Callers, agents and the model run in this process. The agents declare an intent and a
// domain that the registry file has already, so that nothing is new to learn.
//
// No request, registration or heartbeat may fail, no lease may end, the lexical model may
// not be trained again, and the router may not ask the model about a prompt that it has
// in its cache. The command exits with 1 if any of this is violated. Times are printed,
// but are no reason to fail.
//
// All traffic is on loopback, and is bounded in number and time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

func main() {
	var opts options
	flag.IntVar(&opts.agents, "agents", 10_000, "number of agents that send heartbeats")
	flag.IntVar(&opts.joining, "joining", 1000, "number of agents that register under load")
	flag.DurationVar(&opts.duration, "for", 30*time.Second, "duration of the load")
	process.BinaryFlag(&opts.binary)
	process.KeepFlag(&opts.keep)
	flag.Parse()
	process.RunDriver("fleet", func(ctx context.Context) error { return runFleet(ctx, opts, os.Stdout) })
}

type options struct {
	agents, joining int
	duration        time.Duration
	binary          string
	keep            bool
}

// runFleet runs all phases and prints the report. It returns an error if a check found a
// violation or a phase could not run.
func runFleet(ctx context.Context, opts options, out io.Writer) (err error) {
	dir, remove, err := process.MakeRunDir("fleet", opts.keep, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if opts.binary, err = process.FindOrBuild(ctx, opts.binary, dir); err != nil {
		return err
	}
	report, err := measure(ctx, opts, dir)
	if err != nil {
		return err
	}
	report.PrintTo(out)
	if n := report.CountViolations(); n > 0 {
		return fmt.Errorf("%d violations", n)
	}
	return nil
}
