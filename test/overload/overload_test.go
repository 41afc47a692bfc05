package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/test/internal/process"
)

// A run must fail if its router dies. The driver itself is a command,
// and .ci/run makes a short run of it.
func TestTestbed_ReportsDeadRouter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and measures it")
	}
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &testbed{opts: options{binary: binary}, dir: t.TempDir(), failures: &failureLog{}}
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
	for _, opts := range []options{{duration: time.Millisecond}, {duration: time.Hour}, {duration: time.Second, slow: -1}} {
		if err := opts.validate(); err == nil {
			t.Errorf("%+v: got nil, want an error", opts)
		}
	}
	opts := options{duration: time.Second}
	if err := opts.validate(); err != nil {
		t.Error(err)
	}
}
