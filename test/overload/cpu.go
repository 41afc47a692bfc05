package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/test/internal/process"
)

// maxForeignCPU is the share of the CPUs that other programs may use while a router is
// measured. Beyond it, times and rates say nothing about the router.
const maxForeignCPU = 0.15

// cpuTimes are CPU times in clock ticks.
type cpuTimes struct{ total, busy, own int64 }

// readCPUTimes reads the times of the machine, of this process and of those that it has
// started. They are zero on systems without /proc.
func readCPUTimes(started []*process.Process) (t cpuTimes) {
	machine, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}
	}
	t.total, t.busy = parseMachineTimes(machine)
	pids := []int{os.Getpid()}
	for _, p := range started {
		pids = append(pids, p.PID())
	}
	for _, pid := range pids {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			t.own += parseProcessTime(stat)
		}
	}
	return t
}

// parseMachineTimes reads the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq, steal.
func parseMachineTimes(stat []byte) (total, busy int64) {
	line, _, _ := bytes.Cut(stat, []byte{'\n'})
	for i, text := range strings.Fields(string(line)) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || i > 8 {
			continue
		}
		total += n
		if i != 4 && i != 5 {
			busy += n
		}
	}
	return total, busy
}

// parseProcessTime reads the user and system time of /proc/PID/stat.
func parseProcessTime(stat []byte) (ticks int64) {
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may contain spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	for _, text := range fields[11:13] {
		n, _ := strconv.ParseInt(text, 10, 64)
		ticks += n
	}
	return ticks
}

// foreignShare returns the share of the CPUs that other programs used since a time.
func (t cpuTimes) foreignShare(since cpuTimes) float64 {
	total := t.total - since.total
	if total <= 0 {
		return 0
	}
	return max(0, float64(t.busy-since.busy-(t.own-since.own))/float64(total))
}
