package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

func printTables(out io.Writer, cfg runConfig, results []result) error {
	fmt.Fprintf(out, "CPU and allocations of the serving process per request; medians of %d rounds × %d requests over %d connections\n",
		cfg.rounds, cfg.requests, cfg.clients)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tCPU µs\t× floor (min–max)\tp50 ms\tp99 ms\tallocs\tKiB\tRSS MiB\tpeak\tstart ms")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f\t%s\n", r.title, formatFigure("%.1f", medianOf(r.rounds, cpuMicros)),
			formatRatio(r, results), medianOf(r.rounds, p50Millis), medianOf(r.rounds, p99Millis), strings.Join([]string{
				formatFigure("%.0f", medianOf(r.rounds, func(s sample) float64 { return s.Allocs })),
				formatFigure("%.1f", medianOf(r.rounds, func(s sample) float64 { return s.AllocKiB })),
				formatFigure("%.0f", medianOf(r.rounds, func(s sample) float64 { return s.RSSMiB })),
				formatFigure("%.0f", medianOf(r.rounds, func(s sample) float64 { return s.PeakMiB })),
				formatFigure("%.0f", r.startMillis),
			}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printSequential(out, results)
}

// printSequential prints the latency over one connection, where each request waits for
// the disk alone.
func printSequential(out io.Writer, results []result) error {
	if !slices.ContainsFunc(results, func(r result) bool { return r.sequential }) {
		return nil
	}
	fmt.Fprintln(out, "\nOne connection")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tp50 ms (min–max)\tp99 ms\tCPU µs")
	for _, r := range results {
		if r.sequential {
			p50 := sortedFigures(r.single, p50Millis)
			fmt.Fprintf(w, "%s\t%.2f (%.2f–%.2f)\t%.2f\t%s\n", r.title, p50[len(p50)/2], p50[0], p50[len(p50)-1],
				medianOf(r.single, p99Millis), formatFigure("%.1f", medianOf(r.single, cpuMicros)))
		}
	}
	return w.Flush()
}

// formatFigure leaves out a figure that the subject does not have.
func formatFigure(format string, value float64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf(format, value)
}

// formatRatio returns the median, least and largest ratio to the floor.
func formatRatio(r result, results []result) string {
	ratios := floorRatios(r, results)
	if ratios == nil {
		return "floor"
	}
	slices.Sort(ratios)
	return fmt.Sprintf("%.2f (%.2f–%.2f)", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
}

// floorRatios compares the CPU time with that of the floor round by round, so that
// changes of the machine's speed cancel out. It returns nil for a floor.
func floorRatios(r result, results []result) []float64 {
	floor := slices.IndexFunc(results, func(other result) bool { return other.name == r.floor })
	if floor < 0 {
		return nil
	}
	ratios := make([]float64, len(r.rounds))
	for i := range ratios {
		ratios[i] = r.rounds[i].CPUMicros / results[floor].rounds[i].CPUMicros
	}
	return ratios
}

func cpuMicros(s sample) float64 { return s.CPUMicros }
func p50Millis(s sample) float64 { return s.P50Millis }
func p99Millis(s sample) float64 { return s.P99Millis }

func medianOf(samples []sample, of func(sample) float64) float64 {
	figures := sortedFigures(samples, of)
	return figures[len(figures)/2]
}

func sortedFigures(samples []sample, of func(sample) float64) []float64 {
	figures := make([]float64, len(samples))
	for i, s := range samples {
		figures[i] = of(s)
	}
	slices.Sort(figures)
	return figures
}

// writeJSON writes every round.
func writeJSON(path string, cfg runConfig, results []result) error {
	type row struct {
		Name        string   `json:"name"`
		Title       string   `json:"title"`
		Floor       string   `json:"floor,omitempty"`
		StartMillis float64  `json:"start_ms,omitempty"`
		Rounds      []sample `json:"rounds"`
		Sequential  []sample `json:"one_connection,omitempty"`
	}
	rows := make([]row, len(results))
	for i, r := range results {
		rows[i] = row{r.name, r.title, r.floor, r.startMillis, r.rounds, r.single}
	}
	data, err := json.MarshalIndent(struct {
		Requests    int   `json:"requests"`
		Connections int   `json:"connections"`
		Scenarios   []row `json:"scenarios"`
	}{cfg.requests, cfg.clients, rows}, "", "  ")
	return errors.Join(err, os.WriteFile(path, append(data, '\n'), 0o600))
}

// appendGoBenchmarks appends a line for each round in the format of Go benchmarks, which
// benchstat compares. benchstat converts units with "ns" to seconds.
func appendGoBenchmarks(path string, cfg runConfig, results []result) error {
	var text strings.Builder
	for _, r := range results {
		ratios := floorRatios(r, results)
		for i, s := range r.rounds {
			writeGoBenchmark(&text, "BenchmarkRoute/"+r.name, cfg.requests, s)
			if ratios != nil {
				fmt.Fprintf(&text, " %.3f cpu/floor", ratios[i])
			}
			fmt.Fprintln(&text)
		}
		for _, s := range r.single {
			writeGoBenchmark(&text, "BenchmarkOneConnection/"+r.name, max(cfg.requests/sequentialShare, 1), s)
			fmt.Fprintln(&text)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text.String())
	return errors.Join(err, file.Close())
}

func writeGoBenchmark(out io.Writer, name string, requests int, s sample) {
	fmt.Fprintf(out, "%s %d %.0f p50-ns/op %.0f p99-ns/op", name, requests, s.P50Millis*1e6, s.P99Millis*1e6)
	if s.CPUMicros > 0 {
		fmt.Fprintf(out, " %.0f cpu-ns/op %.0f B/op %.1f allocs/op %.0f rss-B", s.CPUMicros*1e3, s.AllocKiB*(1<<10), s.Allocs, s.RSSMiB*(1<<20))
	}
}
