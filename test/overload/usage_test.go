package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseProcessCPU(t *testing.T) {
	const after = " S 1 2 3 0 -1 4194560 100 0 0 0 150 50 0 0 20 0"
	for _, tt := range []struct {
		name, stat string
		want       time.Duration
	}{
		{"user and system", "42 (caprouter)" + after, 2 * time.Second},
		{"a name with everything in it", "42 (a b) S (1) 7)" + after, 2 * time.Second},
		{"cut off", "42 (caprouter) S 1 2", 0},
		{"nothing", "", 0},
	} {
		if got := parseProcessCPU(tt.stat); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestParseMachineCPU(t *testing.T) {
	for _, tt := range []struct {
		name, stat string
		want       time.Duration
	}{
		{"all but idle", "cpu  100 20 30 4000 500 6 7 8 9 10\ncpu0 1 2 3", 171 * clockTick},
		{"another first line", "intr 100 20 30 4000 500 6 7 8 9 10", 0},
		{"nothing", "", 0},
	} {
		if got := parseMachineCPU(tt.stat); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestFormatCPUUsage_ListsConsumers(t *testing.T) {
	us := []cpuConsumer{{"callers", os.Getpid()}}
	began := readCPU(us)
	began.at = began.at.Add(-time.Second)
	got := formatCPUUsage(us, began)
	if began.machine == 0 {
		t.Skip("the system does not tell")
	}
	if !strings.HasPrefix(got, "callers ") || !strings.Contains(got, ", others ") {
		t.Errorf("got %q", got)
	}
}

func TestParseUsage(t *testing.T) {
	got, err := parseUsage([]byte("# HELP go_goroutines Number\ngo_goroutines 64\nprocess_open_fds 13\nprocess_resident_memory_bytes 4.194304e+07\n"))
	if want := (resourceUsage{goroutines: 64, files: 13, rssMiB: 40}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseUsage([]byte("not metrics")); err == nil {
		t.Error("got nil of what is no metrics")
	}
}

func TestCheckReleased(t *testing.T) {
	before := resourceUsage{goroutines: 60, files: 15, rssMiB: 40}
	for _, tt := range []struct {
		name string
		now  resourceUsage
		want string
	}{
		{"as before", before, ""},
		{"connections to the agent", resourceUsage{goroutines: 60 + 2*64, files: 15 + 64, rssMiB: 150}, ""},
		{"goroutines are left", resourceUsage{goroutines: 60 + 2*64 + allowedGoroutines + 1, files: 15, rssMiB: 40}, "253 goroutines"},
		{"files are left", resourceUsage{goroutines: 60, files: 15 + 64 + allowedFiles + 1, rssMiB: 40}, "112 files"},
		{"memory is left", resourceUsage{goroutines: 60, files: 15, rssMiB: 2*40 + allowedMiB + 1}, "337 MiB"},
	} {
		err := tt.now.checkReleased(before, 64)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
