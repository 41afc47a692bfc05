package main

import (
	"strings"
	"testing"
)

func TestParseUsage(t *testing.T) {
	got, err := parseUsage([]byte("# HELP go_goroutines Number\ngo_goroutines 64\nprocess_open_fds 13\nprocess_resident_memory_bytes 4.194304e+07\ngo_memstats_next_gc_bytes 5.24288e+07\n"))
	if want := (resourceUsage{goroutines: 64, files: 13, rssMiB: 40, heapMiB: 10}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseUsage([]byte("not metrics")); err == nil {
		t.Error("got nil for an invalid metrics text, want an error")
	}
}

func TestCheckReleased(t *testing.T) {
	before := resourceUsage{goroutines: 60, files: 15, rssMiB: 40}
	for _, tt := range []struct {
		name string
		now  resourceUsage
		want string
	}{
		{"unchanged", before, ""},
		{"connections to the agent", resourceUsage{goroutines: 60 + 2*64, files: 15 + 64, rssMiB: 150}, ""},
		{"goroutines are left", resourceUsage{goroutines: 60 + allowedGoroutines + 1, files: 15, rssMiB: 40}, "253 goroutines"},
		{"files are left", resourceUsage{goroutines: 60, files: 15 + allowedFiles + 1, rssMiB: 40}, "112 files"},
		{"memory is left", resourceUsage{goroutines: 60, files: 15, rssMiB: 2*40 + allowedMiB + 1}, "465 MiB"},
	} {
		err := tt.now.checkReleased(before)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
