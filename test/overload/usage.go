package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

type resourceUsage struct {
	goroutines, files int
	rssMiB            float64
	heapMiB           float64 // live objects after the last collection
}

// heapTarget is the size of the heap at the next collection, of the live objects: the
// router collects garbage at 400 % growth.
const heapTarget = 5

// fetchUsage reads the metrics of a router.
func fetchUsage(ctx context.Context, addr string) (resourceUsage, error) {
	l := &connection{addr: addr}
	defer l.close()
	r, err := l.roundTrip(ctx, formatGet("/metrics", 1))
	if err != nil {
		return resourceUsage{}, fmt.Errorf("read metrics: %w", err)
	}
	return parseUsage(r.body)
}

func parseUsage(metrics []byte) (resourceUsage, error) {
	values := map[string]float64{"go_goroutines": -1, "process_open_fds": -1, "process_resident_memory_bytes": -1, "go_memstats_next_gc_bytes": -1}
	for line := range bytes.Lines(metrics) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if _, ok := values[name]; ok {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	h := resourceUsage{
		goroutines: int(values["go_goroutines"]), files: int(values["process_open_fds"]),
		rssMiB:  values["process_resident_memory_bytes"] / (1 << 20),
		heapMiB: values["go_memstats_next_gc_bytes"] / (1 << 20) / heapTarget,
	}
	if h.goroutines < 0 {
		return h, errors.New("the metrics contain no number of goroutines")
	}
	return h, nil
}

// The allowed growth covers connections to the agent, with two goroutines each, and
// memory that the runtime has not returned yet: up to five times the live heap, because
// the router collects garbage at 400 % growth.
const (
	allowedGoroutines = 2*inFlight + 64
	allowedFiles      = inFlight + 32
	allowedMiB        = 384
)

// checkReleased returns an error if resources have grown more than allowed.
func (h resourceUsage) checkReleased(before resourceUsage) error {
	var errs []error
	if most := before.goroutines + allowedGoroutines; h.goroutines > most {
		errs = append(errs, fmt.Errorf("%d goroutines, %d before, at most %d expected", h.goroutines, before.goroutines, most))
	}
	if most := before.files + allowedFiles; h.files > most {
		errs = append(errs, fmt.Errorf("%d files, %d before, at most %d expected", h.files, before.files, most))
	}
	if most := 2*before.rssMiB + allowedMiB; h.rssMiB > most {
		errs = append(errs, fmt.Errorf("%.0f MiB, %.0f before, at most %.0f expected", h.rssMiB, before.rssMiB, most))
	}
	return errors.Join(errs...)
}
