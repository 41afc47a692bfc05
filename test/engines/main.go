// Command engines compares storage engines with the mix of records of the audit log: a
// decision of 1.6 KiB and an outcome of 2.4 KiB for each request, written in batches as the
// audit log does (group commit), each batch synced. It is a module of its own, so that the
// router does not depend on the engines it does not use.
//
//	go run . -requests 20000
//
// Each engine runs in a process of its own, which is started again to measure how long the
// written store takes to open.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
)

func main() {
	requests := flag.Int("requests", 20_000, "requests per engine")
	role := flag.String("engine", "", "run one engine in this process")
	dir := flag.String("dir", "", "its directory")
	callers := flag.Int("callers", 0, "its concurrent callers; 0 only opens the store")
	flag.Parse()
	err := error(nil)
	if *role != "" {
		err = runEngine(context.Background(), *role, *dir, *callers, *requests)
	} else {
		err = compareEngines(context.Background(), *requests)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

// result is what a process of one engine measured.
type result struct {
	OpenMillis    float64 `json:"open_ms"`
	PerSecond     float64 `json:"requests_per_s"`
	CPUMicros     float64 `json:"cpu_us"` // per request, user and system
	MeanBatch     float64 `json:"mean_batch"`
	RSSMiB        float64 `json:"rss_mib"`
	DiskMiB       float64 `json:"disk_mib"`
	WaitP50Millis float64 `json:"wait_p50_ms"`
	WaitP99Millis float64 `json:"wait_p99_ms"`
}

func compareEngines(ctx context.Context, requests int) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "engine\tcallers\trequests/s\tCPU µs/request\trecords/batch\tp50 ms\tp99 ms\tRSS MiB\tdisk MiB\topen ms (written)")
	for _, callers := range []int{1, 64} {
		count := requests
		if callers == 1 {
			count = requests / 10
		}
		for _, engine := range []string{"file", "jetstream", "bbolt", "pebble"} {
			got, reopened, err := measure(ctx, engine, callers, count)
			if err != nil {
				return fmt.Errorf("%s: %w", engine, err)
			}
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%.1f\t%.1f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\n", engine, callers, got.PerSecond,
				got.CPUMicros, got.MeanBatch, got.WaitP50Millis, got.WaitP99Millis, got.RSSMiB, got.DiskMiB, reopened.OpenMillis)
		}
	}
	return w.Flush()
}

func measure(ctx context.Context, engine string, callers, requests int) (written, reopened result, err error) {
	dir, err := os.MkdirTemp("", "caprouter-engines-")
	if err != nil {
		return written, reopened, err
	}
	defer os.RemoveAll(dir)
	if written, err = runChild(ctx, engine, dir, callers, requests); err != nil {
		return written, reopened, err
	}
	reopened, err = runChild(ctx, engine, dir, 0, 0)
	return written, reopened, err
}

func runChild(ctx context.Context, engine, dir string, callers, requests int) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, self, "-engine", engine, "-dir", filepath.Join(dir, "store"),
		"-callers", fmt.Sprint(callers), "-requests", fmt.Sprint(requests))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}
