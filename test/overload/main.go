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
// The part "neighbour" measures a tenant with few requests while another one floods a
// router that has a small store. The part "soak", which runs only if it is selected,
// samples what such a router uses under a constant mixed load; `make soak` runs it.
//
// Failures are: an answer that is neither good nor a correct rejection, a broken
// connection, a router that dies, one that does not release goroutines, sockets or
// memory after callers disconnect, a heap that grows all the time, and a measurement beyond its limit. The limits depend
// on the baseline, and apply only if other programs leave the CPUs to this one.
//
// All traffic is on loopback, and is bounded in number and time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

func main() {
	var opts options
	flag.DurationVar(&opts.duration, "for", time.Minute, "duration of the overload; the other phases are fractions of it")
	flag.IntVar(&opts.slow, "slow", 1000, "slow connections of each kind; 0 skips this part")
	flag.StringVar(&opts.only, "only", "", "run one part: "+strings.Join(partNames(), ", ")+"; empty is all but "+soakPart)
	flag.StringVar(&opts.flood, "flood", "", "operations of the parts neighbour and soak, separated by commas; empty is all")
	process.BinaryFlag(&opts.binary)
	process.KeepFlag(&opts.keep)
	flag.Parse()
	process.RunDriver("overload", func(ctx context.Context) error {
		if role := flag.Arg(0); role != "" {
			return serveRole(ctx, role)
		}
		return runAll(ctx, opts, os.Stdout)
	})
}

type options struct {
	duration time.Duration
	slow     int
	only     string
	flood    string
	binary   string
	keep     bool
}

// part is a sequence of measurements.
type part struct {
	name    string
	measure []func(*testbed, context.Context, *report) error
}

const soakPart = "soak"

func allParts() []part {
	return []part{
		{"overload", []func(*testbed, context.Context, *report) error{
			(*testbed).measureBaseline, (*testbed).measureRoutes, (*testbed).measureSlow, (*testbed).measureDryRuns,
		}},
		{"neighbour", []func(*testbed, context.Context, *report) error{(*testbed).measureNeighbour}},
		{soakPart, []func(*testbed, context.Context, *report) error{(*testbed).measureSoak}},
	}
}

func partNames() (names []string) {
	for _, p := range allParts() {
		names = append(names, p.name)
	}
	return names
}

// parts returns the selected parts.
func (o options) parts() []part {
	return slices.DeleteFunc(allParts(), func(p part) bool { return p.name != o.only && (o.only != "" || p.name == soakPart) })
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
	if o.duration < time.Second || o.duration > maxDuration && o.only != soakPart {
		return fmt.Errorf("-for: at least 1s, at most %s", maxDuration)
	}
	if o.slow < 0 {
		return errors.New("-slow: must not be negative")
	}
	if len(o.parts()) == 0 {
		return fmt.Errorf("-only: %q is not one of %s", o.only, strings.Join(partNames(), ", "))
	}
	return nil
}
