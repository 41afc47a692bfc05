// Command crash proves that nothing is lost: it kills a router with SIGKILL while
// requests are under way, starts it again on the same data directory, and at the
// end holds what was promised against what became of it. `make crash` runs it.
//
//	callers ──POST, GET, events──▶ caprouter serve ──tasks──▶ agents
//	   │                             ▲        ▲                 │
//	   │             SIGKILL, start ─┘        └──── callbacks ──┤
//	   └──▶ ledger: what was promised and seen, what was done ◀─┘
//
// Callers and agents live in this process and survive the router. Agents count
// every execution and remember what they were told of their results; they check
// no tokens, which is other tests' business. What is wrong is named by request.
// Times are printed and never judged.
//
// A second part opens many requests whose agents stay silent, kills the router,
// and prints how long the next one takes until it listens and works, beside the
// start of an empty one.
//
// Everything happens on loopback and is bounded in number and time.
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
)

func main() {
	var opts options
	flag.IntVar(&opts.cycles, "cycles", 200, "times the router is killed; 0 leaves this part out")
	flag.IntVar(&opts.open, "open", 10_000, "requests that are open when the router is killed; 0 leaves this part out")
	flag.IntVar(&opts.callers, "callers", 4, "callers at a time")
	flag.DurationVar(&opts.life, "life", 400*time.Millisecond, "the longest a router lives")
	flag.DurationVar(&opts.settle, "settle", time.Minute, "how long to wait for the ends of all requests")
	flag.Uint64Var(&opts.seed, "seed", uint64(time.Now().UnixNano()), "of what is left to chance")
	flag.BoolVar(&opts.keep, "keep", false, "keep the directory with the data and the log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := crash(ctx, opts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	cycles, open, callers int
	life, settle          time.Duration
	seed                  uint64
	keep                  bool
}

// crash runs both parts and prints what came of them. The error says that
// something was wrong, or that it could not be found out.
func crash(ctx context.Context, opts options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "caprouter-crash-")
	if err != nil {
		return err
	}
	if opts.keep {
		fmt.Fprintln(out, "directory:", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	binary, err := build(ctx, dir)
	if err != nil {
		return err
	}
	wrong := 0
	for _, part := range []struct {
		size int
		run  func(context.Context, place, options) (*report, error)
	}{{opts.cycles, runCycles}, {opts.open, runOpen}} {
		if part.size == 0 {
			continue
		}
		r, err := part.run(ctx, place{dir: dir, binary: binary}, opts)
		if err != nil {
			return err
		}
		r.print(out)
		wrong += r.wrong()
	}
	if wrong > 0 {
		return fmt.Errorf("%d promises were broken (seed %d)", wrong, opts.seed)
	}
	return nil
}
