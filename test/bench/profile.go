package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/google/pprof/profile"
)

// profileScenarios writes a CPU profile of the server of each scenario under load into
// dir, and prints the categories of its CPU time. A scenario is profiled for all its
// rounds at once.
func profileScenarios(ctx context.Context, cfg runConfig, selected []scenario, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	bed, err := startTestbed(ctx, selected)
	defer bed.stopAll(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	requests := cfg.rounds * cfg.requests
	fmt.Printf("CPU µs per request by category; profiles of %d requests over %d connections in %s\n", requests, cfg.clients, dir)
	for _, c := range categories() {
		fmt.Printf("  %-9s  %s\n", c.name, c.meaning)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "scenario\t")
	for _, c := range categories() {
		fmt.Fprint(w, c.name, "\t")
	}
	fmt.Fprintln(w, "sum\tCPU\t")
	for _, s := range bed.subjects {
		measured, ok := s.loaded.(*loadedServer)
		if !ok {
			continue
		}
		fmt.Fprintf(os.Stderr, "\rprofile of %-40s", s.name)
		data, load, err := measured.profile(ctx, cfg, requests)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, s.name+".pprof"), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("profile %s: %w", s.name, err)
		}
		if err := printCategories(w, s.name, data, requests); err != nil {
			return fmt.Errorf("profile of %s: %w", s.name, err)
		}
		fmt.Fprintf(w, "%.1f\t\n", load.CPUMicros)
	}
	fmt.Fprintf(os.Stderr, "\r%60s\r", "")
	return w.Flush()
}

// profile returns the profile and the measurements of the server during the requests,
// after a warm-up.
func (l *loadedServer) profile(ctx context.Context, cfg runConfig, requests int) ([]byte, sample, error) {
	if _, err := l.sendAll(ctx, cfg.clients, cfg.requests); err != nil {
		return nil, sample{}, err
	}
	if _, err := l.server.fetch(ctx, pathProfileStart); err != nil {
		return nil, sample{}, err
	}
	load, loadErr := l.measure(ctx, cfg.clients, requests)
	data, err := l.server.fetch(ctx, pathProfileStop)
	return data, load, errors.Join(loadErr, err)
}

func printCategories(w io.Writer, name string, data []byte, requests int) error {
	p, err := profile.ParseData(data)
	if err != nil {
		return err
	}
	sums, total := sumByCategory(p), int64(0)
	perRequest := func(nanos int64) float64 { return float64(nanos) / 1e3 / float64(requests) }
	fmt.Fprint(w, name, "\t")
	for _, c := range categories() {
		total += sums[c.name]
		fmt.Fprintf(w, "%.1f\t", perRequest(sums[c.name]))
	}
	fmt.Fprintf(w, "%.1f\t", perRequest(total))
	return nil
}
