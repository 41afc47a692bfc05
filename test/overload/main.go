// Command overload measures what becomes of a router that is asked for more than
// it can do, and prints figures beside their goals and beside a floor: a bare
// net/http server with the same bound, in the same run. `make overload` runs it.
//
//	this process              a process each
//	callers ───────requests──▶ caprouter serve ──tasks──▶ agent (answers after -work)
//	slow connections ─────────▶      │
//	callers ───────requests──▶ bare server: takes -in-flight, refuses the rest
//
// -in-flight requests at a time of -work each are what a router can do at most:
// both are chosen so that the CPUs are not what limits it. How much of them was
// used, and by whom, stands in the report: figures of a machine on which others
// are busy say little. One more table is about dry runs, which end nowhere but in
// the CPUs.
//
// Arrivals are scheduled by the clock, and a request is late from the moment it
// was due: a caller who waits for an answer hides nothing.
//
// Times are printed and never judged. What is wrong is an answer that is neither
// good nor a proper refusal, a connection that breaks, a router that dies, and
// one that keeps goroutines, sockets or memory when everybody has left.
//
// Everything happens on loopback and is bounded in number and time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var opts options
	flag.DurationVar(&opts.lasts, "for", time.Minute, "how long the overload lasts; everything else takes a part of it")
	flag.IntVar(&opts.slow, "slow", 1000, "slow connections of each kind; 0 leaves this part out")
	flag.IntVar(&opts.inFlight, "in-flight", 64, "requests the router works on at a time")
	flag.DurationVar(&opts.work, "work", 40*time.Millisecond, "what the agent takes to answer")
	flag.IntVar(&opts.connections, "connections", 1024, "connections of ordinary callers, at most")
	flag.StringVar(&opts.binary, "binary", "", "the router to measure; without it, it is built")
	flag.BoolVar(&opts.keep, "keep", false, "keep the directory with the data and the log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if role := flag.Arg(0); role != "" {
		err = serveRole(ctx, role, opts)
	} else {
		err = overload(ctx, opts, output{report: os.Stdout, progress: os.Stderr})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	lasts, work                 time.Duration
	slow, inFlight, connections int
	binary                      string
	keep                        bool
}

// longest bounds an overload: every arrival is remembered.
const longest = 10 * time.Minute

// factor is how many times its peak a server is asked for.
const factor = 5

// check says what cannot be measured.
func (o options) check() error {
	if o.lasts < time.Second || o.lasts > longest {
		return fmt.Errorf("-for: at least 1s, at most %s", longest)
	}
	if o.inFlight < 1 || o.connections < 2*o.inFlight || o.work <= 0 || o.slow < 0 {
		return errors.New("-in-flight and -work are more than 0, -slow is not less, -connections is at least twice -in-flight")
	}
	return raiseFiles(2*(o.slow+o.connections) + 256)
}

// raiseFiles lets this process have so many files, sockets among them. A router
// raises its own bound.
func raiseFiles(need int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("ask for the limit of open files: %w", err)
	}
	if limit.Cur >= uint64(need) {
		return nil
	}
	limit.Cur = limit.Max
	if limit.Max < uint64(need) {
		return fmt.Errorf("%d open files are needed and %d allowed: raise ulimit -Hn, or lower -slow and -connections", need, limit.Max)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raise the limit of open files to %d: %w", limit.Cur, err)
	}
	return nil
}
