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
// because other tests do. At the end the audit log is compared with what callers and
// agents saw. Violations are listed by request. Times are printed, but are no reason to
// fail.
//
// The parts are the same traffic with
//
//	-cycles     kills of the router, and one graceful shutdown
//	-trim       a store of 64 MiB, which is full all the time
//	-power      power failures: a kill also loses what was not synced
//	-external   a NATS server as the store, which is restarted, too
//	-cluster    two routers that share a cluster of three NATS servers; one is killed
//
// and -open: many requests are open when the router is killed; it prints how long the
// next router takes to listen and to resume them.
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
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

func main() {
	var opts options
	flag.IntVar(&opts.cycles, "cycles", 200, "number of kills; 0 skips this part")
	flag.IntVar(&opts.trim, "trim", 40, "number of kills with a full store; 0 skips this part")
	flag.IntVar(&opts.power, "power", 40, "number of power failures; 0 skips this part")
	flag.IntVar(&opts.external, "external", 20, "number of restarts of an external store or its router; 0 skips this part")
	flag.IntVar(&opts.cluster, "cluster", 40, "number of kills of one of two routers that share a cluster of NATS servers; 0 skips this part")
	flag.IntVar(&opts.openRequests, "open", 10_000, "number of requests that are open when the router is killed; 0 skips this part")
	flag.Uint64Var(&opts.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random numbers")
	process.KeepFlag(&opts.keep)
	flag.Parse()
	process.RunDriver("crash", func(ctx context.Context) error {
		if flag.Arg(0) == roleStore {
			return serveStore(ctx, flag.Arg(1), flag.Arg(2))
		}
		return runParts(ctx, opts, os.Stdout)
	})
}

type options struct {
	cycles, trim, power, external, cluster, openRequests int
	seed                                                 uint64
	keep                                                 bool
}

// smallStore is the minimum of store.retention.max_bytes.
const smallStore = "64MiB"

// runParts runs all parts and prints their reports. It returns an error if a check
// found a violation or a part could not run.
func runParts(ctx context.Context, opts options, out io.Writer) (err error) {
	dir, remove, err := process.MakeRunDir("crash", opts.keep, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	violations := 0
	for _, part := range []struct {
		name, title string
		size        int
		testbedConfig
	}{
		{"cycles", "kills", opts.cycles, testbedConfig{}},
		{"trim", "kills with a full store of " + smallStore, opts.trim, testbedConfig{maxBytes: smallStore}},
		{"power", "power failures", opts.power, testbedConfig{powerFails: true}},
		{"external", "restarts of an external store or its router", opts.external, testbedConfig{external: true}},
		{"cluster", "kills of routers that share a cluster of NATS servers", opts.cluster, testbedConfig{clusterSize: 2}},
		{"open", "", opts.openRequests, testbedConfig{}},
	} {
		if part.size == 0 {
			continue
		}
		cfg := part.testbedConfig
		cfg.dir, cfg.seed = filepath.Join(dir, part.name), opts.seed
		var patches []process.Patch
		if cfg.powerFails {
			patches = syncRecorder()
		}
		if err := os.MkdirAll(cfg.dir, 0o700); err != nil {
			return err
		}
		if cfg.binary, err = process.Build(ctx, cfg.dir, patches...); err != nil {
			return err
		}
		var r *workload.Report
		if part.name == "open" {
			r, err = runOpen(ctx, part.size, cfg)
		} else {
			r, err = runCycles(ctx, part.title, part.size, cfg)
		}
		if err != nil {
			return fmt.Errorf("part %s: %w", part.name, err)
		}
		r.PrintTo(out)
		violations += r.CountViolations()
	}
	if violations > 0 {
		return fmt.Errorf("%d violations (seed %d)", violations, opts.seed)
	}
	return nil
}
