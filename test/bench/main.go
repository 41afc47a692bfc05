// Command bench measures whole processes over loopback, each beside a floor measured in
// the same run, and prints tables. `make bench` runs it after the Go benchmarks.
//
//	the scenarios      see scenarios.go   beside a bare echo, the smallest gateway, a bare fsync
//	a failing model    three providers    beside the lexical classifier alone
//
// The measurement is the CPU time per request of the serving process alone (user and
// system), because other processes on the machine disturb it least. Each round measures
// all servers in turn, and the median round counts. The load is bounded in requests and
// goes to 127.0.0.1 only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == roleArg {
		exitOnError(serveRole(ctx, os.Args[2]))
		return
	}
	exitOnError(runBench(ctx))
}

func exitOnError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type runConfig struct{ rounds, requests, clients int }

func runBench(ctx context.Context) error {
	cfg := runConfig{}
	flag.IntVar(&cfg.rounds, "rounds", 7, "number of rounds; the median counts")
	flag.IntVar(&cfg.requests, "requests", 4000, "requests per server and round")
	flag.IntVar(&cfg.clients, "clients", 16, "concurrent connections")
	only := flag.String("only", "", "measure the scenarios whose name matches this regular `expression`, and their floors")
	jsonFile := flag.String("json", "", "also write every round to this `file` as JSON")
	goFile := flag.String("text", "", "also append every round to this `file` in the format of Go benchmarks")
	profileDir := flag.String("profile", "", "instead, write a CPU profile of each scenario into this `directory` and print its categories")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if min(cfg.rounds, cfg.requests, cfg.clients) < 1 {
		return errors.New("-rounds, -requests and -clients must be at least 1")
	}
	selected := selectScenarios(chosen)
	if len(selected) == 0 && !chosen.MatchString(failingModelsName) {
		return fmt.Errorf("-only: no scenario matches %q", *only)
	}
	if *profileDir != "" {
		return profileScenarios(ctx, cfg, selected, *profileDir)
	}
	if len(selected) > 0 {
		if err := benchScenarios(ctx, cfg, selected, *jsonFile, *goFile); err != nil {
			return err
		}
	}
	if chosen.MatchString(failingModelsName) {
		return benchModel(ctx)
	}
	return nil
}

func benchScenarios(ctx context.Context, cfg runConfig, selected []scenario, jsonFile, goFile string) error {
	results, err := measureScenarios(ctx, cfg, selected)
	if err != nil {
		return err
	}
	if err := printTables(os.Stdout, cfg, results); err != nil {
		return err
	}
	if jsonFile != "" {
		if err := writeJSON(jsonFile, cfg, results); err != nil {
			return err
		}
	}
	if goFile != "" {
		return appendGoBenchmarks(goFile, cfg, results)
	}
	return nil
}

func measureScenarios(ctx context.Context, cfg runConfig, selected []scenario) ([]result, error) {
	bed, err := startTestbed(ctx, selected)
	defer bed.stopAll(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	return measureRounds(ctx, cfg, bed.subjects)
}
