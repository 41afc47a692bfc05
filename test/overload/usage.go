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

// tick is the unit in which the system counts CPU time for others.
const tick = 10 * time.Millisecond

// consumer is a process whose CPU time is of interest.
type consumer struct {
	name string
	pid  int
}

// reading is the CPU time used so far, by each consumer and by the whole machine.
type reading struct {
	at      time.Time
	each    []time.Duration
	machine time.Duration
}

func read(consumers []consumer) reading {
	r := reading{at: time.Now(), each: make([]time.Duration, len(consumers))}
	for i, c := range consumers {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid)) // not everywhere: then there is no figure
		r.each[i] = cpuOfProcess(string(stat))
	}
	stat, _ := os.ReadFile("/proc/stat")
	r.machine = cpuOfMachine(string(stat))
	return r
}

// usage words how many CPUs were busy since the reading, and with what.
func usage(consumers []consumer, since reading) string {
	now := read(consumers)
	took := now.at.Sub(since.at).Seconds()
	if now.machine == 0 || took <= 0 {
		return "not known here"
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

// cpuOfProcess reads user and system time of /proc/PID/stat.
func cpuOfProcess(stat string) time.Duration {
	// The second field is a name in parentheses, which may hold anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// cpuOfMachine reads from /proc/stat how long all CPUs together were busy.
func cpuOfMachine(stat string) time.Duration {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0
	}
	var busy time.Duration
	for i, field := range fields[1:9] {
		if i == 3 || i == 4 { // idle, and idle while a disk works
			continue
		}
		n, _ := strconv.Atoi(field)
		busy += time.Duration(n) * tick
	}
	return busy
}

// holding is what a router holds.
type holding struct {
	goroutines, files int
	rssMiB            float64
}

func (h holding) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %.0f MiB", h.goroutines, h.files, h.rssMiB)
}

// askHolding asks a router for what it holds.
func askHolding(ctx context.Context, addr string) (holding, error) {
	l := &link{addr: addr}
	defer l.close()
	r, err := l.ask(ctx, get("/metrics", 1))
	if err != nil {
		return holding{}, fmt.Errorf("ask for metrics: %w", err)
	}
	return parseHolding(r.body)
}

func parseHolding(metrics []byte) (holding, error) {
	values := map[string]float64{"go_goroutines": -1, "process_open_fds": -1, "process_resident_memory_bytes": -1}
	for line := range bytes.Lines(metrics) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if _, ok := values[name]; ok {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	h := holding{
		goroutines: int(values["go_goroutines"]), files: int(values["process_open_fds"]),
		rssMiB: values["process_resident_memory_bytes"] / (1 << 20),
	}
	if h.goroutines < 0 {
		return h, errors.New("the metrics do not tell how many goroutines there are")
	}
	return h, nil
}

// What a router may hold more than before, when everybody has left: connections
// to its agent, with two goroutines each, and memory that is not given back yet.
const (
	spareGoroutines = 64
	spareFiles      = 32
	spareMiB        = 256
)

// back says what of it has not come back.
func (h holding) back(before holding, inFlight int) error {
	var errs []error
	if most := before.goroutines + 2*inFlight + spareGoroutines; h.goroutines > most {
		errs = append(errs, fmt.Errorf("%d goroutines are left, %d were there before, at most %d are expected", h.goroutines, before.goroutines, most))
	}
	if most := before.files + inFlight + spareFiles; h.files > most {
		errs = append(errs, fmt.Errorf("%d files are left, %d were there before, at most %d are expected", h.files, before.files, most))
	}
	if most := 2*before.rssMiB + spareMiB; h.rssMiB > most {
		errs = append(errs, fmt.Errorf("%.0f MiB are left, %.0f were there before, at most %.0f are expected", h.rssMiB, before.rssMiB, most))
	}
	return errors.Join(errs...)
}
