package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectScenarios_AddsFloors(t *testing.T) {
	for only, want := range map[string]string{
		"^dry-run$":     "echo dry-run",
		"relaxed":       "fsync gateway one-agent-relaxed two-agents-relaxed",
		"two-.*durable": "gateway two-agents-durable",
		"^failing":      "",
	} {
		var got []string
		for _, s := range selectScenarios(regexp.MustCompile(only)) {
			got = append(got, s.name)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: got scenarios (-want +got):\n%s", only, diff)
		}
	}
}

func TestScenarios_FollowTheirFloors(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, s := range scenarios() {
		if !seen[s.floor] {
			t.Errorf("%s: got no floor %q before it, want one", s.name, s.floor)
		}
		seen[s.name] = true
	}
}

func TestPrintTables_ComparesEachRoundWithFloor(t *testing.T) {
	floor := result{scenario: scenario{name: "floor", title: "a floor"}, startMillis: 5, rounds: []sample{{CPUMicros: 10}, {CPUMicros: 20}, {CPUMicros: 10}}}
	route := result{
		scenario: scenario{name: "route", title: "a route", floor: "floor", sequential: true}, startMillis: 30,
		rounds: []sample{{CPUMicros: 30, Allocs: 7}, {CPUMicros: 40, Allocs: 8}, {CPUMicros: 45, Allocs: 9}},
		single: []sample{{P50Millis: 3}, {P50Millis: 1}, {P50Millis: 2}},
	}
	var got strings.Builder
	if err := printTables(&got, runConfig{rounds: 3, requests: 100, clients: 2}, []result{floor, route}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a floor   10.0    floor", "a route   40.0    3.00 (2.00–4.50)", "  8       ", "a route   2.00 (1.00–3.00)",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("got no %q in:\n%s", want, &got)
		}
	}
}

func TestAppendGoBenchmarks_WritesOneLinePerRound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.txt")
	round := sample{CPUMicros: 1.5, P50Millis: 0.25, P99Millis: 1, Allocs: 7.25, AllocKiB: 2, RSSMiB: 1}
	results := []result{
		{scenario: scenario{name: "fsync"}, rounds: []sample{{P50Millis: 0.25, P99Millis: 1}}}, // without a server
		{scenario: scenario{name: "floor"}, rounds: []sample{round}},
		{scenario: scenario{name: "route", floor: "floor"}, rounds: []sample{round}, single: []sample{round}},
	}
	if err := appendGoBenchmarks(path, runConfig{requests: 100}, results); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const figures = "250000 p50-ns/op 1000000 p99-ns/op 1500 cpu-ns/op 2048 B/op 7.2 allocs/op 1048576 rss-B"
	want := "BenchmarkRoute/fsync 100 250000 p50-ns/op 1000000 p99-ns/op\n" +
		"BenchmarkRoute/floor 100 " + figures + "\n" +
		"BenchmarkRoute/route 100 " + figures + " 1.000 cpu/floor\n" +
		"BenchmarkOneConnection/route 12 " + figures + "\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("got lines (-want +got):\n%s", diff)
	}
}
