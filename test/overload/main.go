// Command overload measures load shedding: it offers a router several times the load
// that it can serve, and prints the measurements beside their goals and beside a
// baseline, which is a bare net/http server with the same limit. `make overload` runs
// it.
//
//	this process              separate processes
//	callers ───────requests──▶ caprouter serve ──tasks──▶ agent (answers after 40 ms)
//	slow connections ─────────▶      │
//	callers ───────requests──▶ bare server: accepts 64 requests, rejects others
//
// The router serves at most 64 requests at a time, so that the CPUs are not the limit.
// Dry runs call no agent, so that only the CPUs limit them.
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
	flag.StringVar(&opts.binary, "binary", "", "binary of the router; built if empty")
	flag.BoolVar(&opts.keep, "keep", false, "keep the directory with the data and the log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if role := flag.Arg(0); role != "" {
		err = serveRole(ctx, role)
	} else {
		err = runAll(ctx, opts, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

type options struct {
	duration time.Duration
	slow     int
	binary   string
	keep     bool
}

const (
	inFlight       = 64                    // concurrent requests of the router
	agentDelay     = 40 * time.Millisecond // until the agent answers
	maxConnections = 1024                  // of other callers
)

// maxDuration bounds the memory, because every arrival is recorded.
const maxDuration = 10 * time.Minute

// overloadFactor is the offered load in multiples of the peak.
const overloadFactor = 5

func (o options) validate() error {
	if o.duration < time.Second || o.duration > maxDuration {
		return fmt.Errorf("-for: at least 1s, at most %s", maxDuration)
	}
	if o.slow < 0 {
		return errors.New("-slow: must not be negative")
	}
	return nil
}
