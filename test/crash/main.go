// Command crash checks that the router loses no accepted request: it kills a router
// with SIGKILL while requests are processed, restarts it on the same data directory,
// and finally compares what was promised with the outcome. `make crash` runs it.
//
//	callers ──POST, GET, events──▶ caprouter serve ──tasks──▶ agents
//	   │                             ▲        ▲                 │
//	   │           SIGKILL, restart ─┘        └──── callbacks ──┤
//	   └──▶ ledger: accepted requests, executions, results ◀────┘
//
// Callers and agents run in this process and survive the router. Agents count every
// execution and record the answers to their callbacks; they do not check tokens,
// because other tests do. Violations are listed by request. Times are printed, but
// are no reason to fail.
//
// A second part opens many requests whose agents stay silent, kills the router, and
// prints how long the next one takes to listen and to resume them.
//
// All traffic is on loopback, and is bounded in number and time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

func main() {
	var opts options
	flag.IntVar(&opts.cycles, "cycles", 200, "number of kills; 0 skips this part")
	flag.IntVar(&opts.openRequests, "open", 10_000, "number of requests that are open when the router is killed; 0 skips this part")
	flag.Uint64Var(&opts.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random numbers")
	flag.BoolVar(&opts.keep, "keep", false, "keep the directory with the data and the log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runParts(ctx, opts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

type options struct {
	cycles, openRequests int
	seed                 uint64
	keep                 bool
}

// runParts runs both parts and prints their reports. It returns an error if a check
// found a violation or a part could not run.
func runParts(ctx context.Context, opts options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "caprouter-crash-")
	if err != nil {
		return err
	}
	if opts.keep {
		fmt.Fprintln(out, "directory:", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	binary, err := process.Build(ctx, dir)
	if err != nil {
		return err
	}
	violations := 0
	for _, part := range []struct {
		size int
		run  func(ctx context.Context, binary, dir string, opts options) (*report, error)
	}{{opts.cycles, runCycles}, {opts.openRequests, runOpen}} {
		if part.size == 0 {
			continue
		}
		r, err := part.run(ctx, binary, dir, opts)
		if err != nil {
			return err
		}
		r.printTo(out)
		violations += r.countViolations()
	}
	if violations > 0 {
		return fmt.Errorf("%d violations (seed %d)", violations, opts.seed)
	}
	return nil
}
