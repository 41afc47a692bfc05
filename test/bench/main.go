// Command bench measures whole processes over loopback, each beside a baseline
// measured in the same run, and prints a table. `make bench` runs it after the Go
// benchmarks.
//
//	decision path      no dispatch     beside a bare net/http JSON echo
//	route to two       two agents      beside the smallest gateway that makes one call
//	a failing model    three providers beside the lexical classifier alone
//
// The measurement is the CPU time per request of the serving process alone (user and
// system), because other processes on the machine disturb it least. Each round measures
// all servers in turn, and the median round counts. The load is bounded in requests and
// goes to 127.0.0.1 only.
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
	if len(os.Args) == 3 && os.Args[1] == roleArg {
		exitOnError(serveRole(ctx, os.Args[2]))
		return
	}
	cfg := runConfig{}
	flag.IntVar(&cfg.rounds, "rounds", 5, "number of rounds; the median counts")
	flag.IntVar(&cfg.requests, "requests", 8000, "requests per server and round")
	flag.IntVar(&cfg.clients, "clients", 8, "concurrent connections")
	flag.Parse()
	exitOnError(benchServers(ctx, cfg))
	exitOnError(benchModel(ctx))
}

func exitOnError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type runConfig struct{ rounds, requests, clients int }

func benchServers(ctx context.Context, cfg runConfig) error {
	bed, err := startTestbed(ctx)
	defer bed.stopAll(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	samples := make([][]sample, len(bed.subjects))
	for round := range cfg.rounds + 1 {
		for i, s := range bed.subjects {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-40s", round, cfg.rounds, s.name)
			got, err := measureRound(ctx, s, cfg)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 { // the first round is a warm-up
				samples[i] = append(samples[i], got)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%60s\r", "")
	return printTable(bed.subjects, samples, cfg)
}

func printTable(subjects []subject, samples [][]sample, cfg runConfig) error {
	fmt.Printf("CPU of the serving process per request; median of %d rounds × %d requests over %d connections\n", cfg.rounds, cfg.requests, cfg.clients)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "server\tCPU µs\t× baseline (min–max)\tp50 ms\tp99 ms\tRSS MiB\tstart ms")
	for i, s := range subjects {
		ratio := "baseline"
		if s.baseline >= 0 {
			least, mid, most := compareRounds(samples[i], samples[s.baseline])
			ratio = fmt.Sprintf("%.2f (%.2f–%.2f)", mid, least, most)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%.2f\t%.2f\t%.0f\t%.0f\n", s.name,
			medianOf(samples[i], func(x sample) float64 { return x.cpuMicros }), ratio,
			medianOf(samples[i], func(x sample) float64 { return x.p50Millis }),
			medianOf(samples[i], func(x sample) float64 { return x.p99Millis }),
			medianOf(samples[i], func(x sample) float64 { return x.rssMiB }),
			float64(s.proc.StartTime.Microseconds())/1000)
	}
	return w.Flush()
}
