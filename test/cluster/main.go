// Command cluster checks routers that share a cluster of NATS servers: it ends and
// suspends routers and servers while requests are processed, and finally compares what
// was promised with the outcome. `make cluster` runs it.
//
//	callers ──▶ balancer ──┬──▶ replica 1 ──┬──▶ NATS server n1 ◀─┐
//	   ▲                   └──▶ replica 2 ──┤        n2 ◀─────────┤ streams with
//	   │                        │           └──▶     n3 ◀─────────┘ three copies
//	   └── agents ◀──── tasks ──┘
//
// Callers and agents run in this process. The balancer alternates between the replicas,
// also for the callbacks of agents. The load has synchronous and asynchronous requests,
// idempotency keys, cancels, event streams, sessions, and an agent that registers itself.
// Besides, each replica is probed by synchronous requests of its own, which measure how
// long it does not answer.
//
// No request with a 202 may be lost, no task of an agent that is not idempotent may be
// executed twice, all replicas must report the same end of each request, and the audit
// log must verify. The command exits with 1 if any of this is violated. Times are
// printed, but are no reason to fail.
//
// The command prints each step when it is done. If the script does not end within
// -limit, the command prints the step and the open requests, and writes the stacks of
// the routers to their logs. It keeps the directory if it fails.
//
// All traffic is on loopback, and is bounded in number and time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

func main() {
	var opts options
	flag.BoolVar(&opts.short, "short", false, "run the script once, with short pauses, in less than a minute")
	flag.IntVar(&opts.rounds, "rounds", 1, "how often the script is run, about two minutes each; 1 with -short")
	flag.DurationVar(&opts.limit, "limit", 5*time.Minute, "how long each round, and the checks at the end, may take")
	process.BinaryFlag(&opts.binary)
	flag.Uint64Var(&opts.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random numbers")
	process.KeepFlag(&opts.keep)
	flag.Parse()
	process.RunDriver("cluster", func(ctx context.Context) error { return runCluster(ctx, opts, os.Stdout) })
}

type options struct {
	short, keep bool
	rounds      int
	limit       time.Duration
	binary      string
	seed        uint64
}

// runCluster runs the script and prints its report. It returns an error if a check
// found a violation or a step could not be done.
func runCluster(ctx context.Context, opts options, out io.Writer) (err error) {
	dir, remove, err := process.MakeRunDir("cluster", opts.keep, out)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = remove()
		} else if !opts.keep { // else MakeRunDir has printed it
			fmt.Fprintln(out, "directory:", dir)
		}
	}()
	if opts.binary, err = process.FindOrBuild(ctx, opts.binary, dir); err != nil {
		return err
	}
	report, err := runScript(ctx, opts, dir, out)
	if err != nil {
		return err
	}
	report.PrintTo(out)
	if n := report.CountViolations(); n > 0 {
		return fmt.Errorf("%d violations (seed %d)", n, opts.seed)
	}
	return nil
}
