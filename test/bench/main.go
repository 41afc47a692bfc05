// Command bench measures whole processes over loopback, each beside a floor
// measured in the same run, and prints a table. `make bench` runs it after the
// Go benchmarks.
//
//	decision path      no dispatch     beside a bare net/http JSON echo
//	route to two       two agents      beside the smallest gateway that makes one call
//	a failing model    three providers beside the lexical classifier alone
//
// The figure is CPU time per request of the serving process alone (user and
// system), which another process on the machine disturbs least; rounds go
// through all servers in turn, and the median round counts. The load is bounded
// in requests and goes to 127.0.0.1 only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == serveArg {
		exitOn(serve(ctx, os.Args[2]))
		return
	}
	cfg := runConfig{}
	flag.IntVar(&cfg.rounds, "rounds", 5, "rounds; the median counts")
	flag.IntVar(&cfg.requests, "requests", 8000, "requests a server and round")
	flag.IntVar(&cfg.clients, "clients", 8, "connections at a time")
	flag.Parse()
	exitOn(bench(ctx, cfg))
	exitOn(benchModel(ctx))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type runConfig struct{ rounds, requests, clients int }

// bench starts every server, measures them in turn and prints the table.
func bench(ctx context.Context, cfg runConfig) error {
	fleet, err := startFleet(ctx)
	defer fleet.stop()
	if err != nil {
		return err
	}
	samples := make([][]sample, len(fleet.subjects))
	for round := range cfg.rounds + 1 {
		for i, s := range fleet.subjects {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-40s", round, cfg.rounds, s.name)
			got, err := measure(ctx, s, cfg)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 { // the first one warms up
				samples[i] = append(samples[i], got)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%60s\r", "")
	return printTable(fleet.subjects, samples, cfg)
}

func printTable(subjects []subject, samples [][]sample, cfg runConfig) error {
	fmt.Printf("CPU of the serving process per request; median of %d rounds × %d requests over %d connections\n", cfg.rounds, cfg.requests, cfg.clients)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tCPU µs\t× floor (min–max)\tp50 ms\tp99 ms\tRSS MiB\tstart ms")
	for i, s := range subjects {
		ratio := "floor"
		if s.floor >= 0 {
			least, mid, most := ratios(samples[i], samples[s.floor])
			ratio = fmt.Sprintf("%.2f (%.2f–%.2f)", mid, least, most)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%.2f\t%.2f\t%.0f\t%.0f\n", s.name,
			median(samples[i], func(x sample) float64 { return x.cpuMicros }), ratio,
			median(samples[i], func(x sample) float64 { return x.p50Millis }),
			median(samples[i], func(x sample) float64 { return x.p99Millis }),
			median(samples[i], func(x sample) float64 { return x.rssMiB }),
			float64(s.proc.start.Microseconds())/1000)
	}
	return w.Flush()
}
