// Command overload measures load shedding: it offers a router several times the load
// that it can serve, and prints the measurements beside their goals and beside a
// baseline, which is a bare net/http server with the same limit. `make overload` runs
// it.
//
//	this process              separate processes
//	callers ───────requests──▶ caprouter serve ──tasks──▶ agent (answers after -work)
//	slow connections ─────────▶      │
//	callers ───────requests──▶ bare server: accepts -in-flight requests, rejects others
//
// The router serves at most -in-flight requests at a time, each of which takes -work.
// Both are chosen so that the CPUs are not the limit. The report contains the CPU time
// by process, because measurements on a busy machine mean little. A further table is
// about dry runs, which only the CPUs limit.
//
// Arrivals are scheduled by the clock, and latency counts from the time a request was
// due, so that a slow answer does not reduce the offered load.
//
// Measurements are printed and are no reason to fail. Failures are: an answer that is
// neither good nor a correct rejection, a broken connection, a router that dies, and
// one that does not release goroutines, sockets or memory after callers disconnect.
//
// All traffic is on loopback, and is bounded in number and time.
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
	flag.DurationVar(&opts.duration, "for", time.Minute, "duration of the overload; the other phases are fractions of it")
	flag.IntVar(&opts.slow, "slow", 1000, "slow connections of each kind; 0 skips this part")
	flag.IntVar(&opts.inFlight, "in-flight", 64, "concurrent requests of the router")
	flag.DurationVar(&opts.work, "work", 40*time.Millisecond, "response time of the agent")
	flag.IntVar(&opts.connections, "connections", 1024, "maximum number of connections of other callers")
	flag.StringVar(&opts.binary, "binary", "", "binary of the router; built if empty")
	flag.BoolVar(&opts.keep, "keep", false, "keep the directory with the data and the log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if role := flag.Arg(0); role != "" {
		err = serveRole(ctx, role, opts)
	} else {
		err = runAll(ctx, opts, output{report: os.Stdout, progress: os.Stderr})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

type options struct {
	duration, work              time.Duration
	slow, inFlight, connections int
	binary                      string
	keep                        bool
}

// maxDuration bounds the memory, because every arrival is recorded.
const maxDuration = 10 * time.Minute

// overloadFactor is the offered load in multiples of the peak.
const overloadFactor = 5

func (o options) validate() error {
	if o.duration < time.Second || o.duration > maxDuration {
		return fmt.Errorf("-for: at least 1s, at most %s", maxDuration)
	}
	if o.inFlight < 1 || o.connections < 2*o.inFlight || o.work <= 0 || o.slow < 0 {
		return errors.New("-in-flight and -work must be positive, -slow must not be negative, -connections must be at least twice -in-flight")
	}
	return raiseFileLimit(2*(o.slow+o.connections) + 256)
}

// raiseFileLimit raises the limit of open files of this process. The router raises its
// own.
func raiseFileLimit(need int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if limit.Cur >= uint64(need) {
		return nil
	}
	limit.Cur = limit.Max
	if limit.Max < uint64(need) {
		return fmt.Errorf("%d open files are needed, %d allowed: raise ulimit -Hn, or lower -slow and -connections", need, limit.Max)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raise the limit of open files to %d: %w", limit.Cur, err)
	}
	return nil
}
