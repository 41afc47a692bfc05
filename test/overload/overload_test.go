package main

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/test/internal/process"
)

// tinyOptions returns options of a run whose measurements mean nothing.
func tinyOptions() options {
	return options{duration: time.Second, work: 5 * time.Millisecond, slow: 20, inFlight: 4, connections: 64}
}

// A run must fail if its router dies. The driver itself is a command,
// and .ci/run makes a short run of it.
func TestTestbed_ReportsADeadRouter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and measures it")
	}
	opts := tinyOptions()
	var err error
	if opts.binary, err = process.Build(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	w := &testbed{opts: opts, dir: t.TempDir(), measurer: &measurer{progress: &bytes.Buffer{}, connections: opts.connections}, failures: &failureLog{}}
	if err := w.startProcesses(t.Context()); err != nil {
		t.Fatal(errors.Join(err, w.close(t.Context())))
	}
	router := w.router
	if err := syscall.Kill(router.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the router has exited", func() bool { return router.CheckRunning() != nil })
	if err := w.awaitRelease(t.Context(), "now"); err == nil || !strings.Contains(err.Error(), "the router died") {
		t.Errorf("got %v, want an error that the router died", err)
	}
	r := &report{}
	w.finishRun(t.Context(), r)
	if r.failureCount != 1 || !strings.Contains(r.failures[0], "the router died") {
		t.Errorf("at the end: got %d failures, %v, want that the router died", r.failureCount, r.failures)
	}
}

func TestOptions_RejectInvalid(t *testing.T) {
	for name, change := range map[string]func(*options){
		"too short":              func(o *options) { o.duration = time.Millisecond },
		"too long":               func(o *options) { o.duration = time.Hour },
		"nothing in flight":      func(o *options) { o.inFlight = 0 },
		"no work":                func(o *options) { o.work = 0 },
		"too few connections":    func(o *options) { o.connections = 2*o.inFlight - 1 },
		"fewer than none":        func(o *options) { o.slow = -1 },
		"more files than anyone": func(o *options) { o.slow = 1 << 40 },
	} {
		opts := tinyOptions()
		change(&opts)
		if err := opts.validate(); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
	opts := tinyOptions()
	if err := opts.validate(); err != nil {
		t.Error(err)
	}
}
