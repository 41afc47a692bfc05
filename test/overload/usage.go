package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc.
const clockTick = 10 * time.Millisecond

// cpuConsumer is a process whose CPU time is reported.
type cpuConsumer struct {
	name string
	pid  int
}

// cpuReading is the CPU time used so far, by each consumer and by the machine.
type cpuReading struct {
	at      time.Time
	each    []time.Duration
	machine time.Duration
}

func readCPU(consumers []cpuConsumer) cpuReading {
	r := cpuReading{at: time.Now(), each: make([]time.Duration, len(consumers))}
	for i, c := range consumers {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid)) // without /proc there is no figure
		r.each[i] = parseProcessCPU(string(stat))
	}
	stat, _ := os.ReadFile("/proc/stat")
	r.machine = parseMachineCPU(string(stat))
	return r
}

// formatCPUUsage returns the number of busy CPUs since the reading, by consumer.
func formatCPUUsage(consumers []cpuConsumer, since cpuReading) string {
	now := readCPU(consumers)
	took := now.at.Sub(since.at).Seconds()
	if now.machine == 0 || took <= 0 {
		return "unknown"
	}
	var words []string
	rest := now.machine - since.machine
	for i, c := range consumers {
		used := now.each[i] - since.each[i]
		rest -= used
		words = append(words, fmt.Sprintf("%s %.2f", c.name, used.Seconds()/took))
	}
	return strings.Join(append(words, fmt.Sprintf("others %.2f", max(0, rest.Seconds()/took))), ", ")
}

// parseProcessCPU parses the user and system time in /proc/PID/stat.
func parseProcessCPU(stat string) time.Duration {
	// The second field is a name in parentheses, which may contain spaces.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick
}

// parseMachineCPU parses the busy time of all CPUs in /proc/stat.
func parseMachineCPU(stat string) time.Duration {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0
	}
	var busy time.Duration
	for i, field := range fields[1:9] {
		if i == 3 || i == 4 { // idle and iowait
			continue
		}
		n, _ := strconv.Atoi(field)
		busy += time.Duration(n) * clockTick
	}
	return busy
}

type resourceUsage struct {
	goroutines, files int
	rssMiB            float64
}

func (h resourceUsage) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %.0f MiB", h.goroutines, h.files, h.rssMiB)
}

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
	values := map[string]float64{"go_goroutines": -1, "process_open_fds": -1, "process_resident_memory_bytes": -1}
	for line := range bytes.Lines(metrics) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if _, ok := values[name]; ok {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	h := resourceUsage{
		goroutines: int(values["go_goroutines"]), files: int(values["process_open_fds"]),
		rssMiB: values["process_resident_memory_bytes"] / (1 << 20),
	}
	if h.goroutines < 0 {
		return h, errors.New("the metrics contain no number of goroutines")
	}
	return h, nil
}

// The allowed growth covers connections to the agent, with two goroutines each, and
// memory that the runtime has not returned yet.
const (
	allowedGoroutines = 64
	allowedFiles      = 32
	allowedMiB        = 256
)

// checkReleased returns an error if resources have grown more than allowed.
func (h resourceUsage) checkReleased(before resourceUsage, inFlight int) error {
	var errs []error
	if most := before.goroutines + 2*inFlight + allowedGoroutines; h.goroutines > most {
		errs = append(errs, fmt.Errorf("%d goroutines, %d before, at most %d expected", h.goroutines, before.goroutines, most))
	}
	if most := before.files + inFlight + allowedFiles; h.files > most {
		errs = append(errs, fmt.Errorf("%d files, %d before, at most %d expected", h.files, before.files, most))
	}
	if most := 2*before.rssMiB + allowedMiB; h.rssMiB > most {
		errs = append(errs, fmt.Errorf("%.0f MiB, %.0f before, at most %.0f expected", h.rssMiB, before.rssMiB, most))
	}
	return errors.Join(errs...)
}
