package main

import (
	"bytes"
	"context"
	"errors"
	"os"
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

// Builds the router once for all tests that start it.
func TestRunAll_WithRouter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and measures it")
	}
	opts := tinyOptions()
	var err error
	if opts.binary, err = process.Build(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		run  func(*testing.T, options)
	}{
		{"complete report without failures", testCompleteReport},
		{"an interrupted run leaves nothing", testInterrupted},
		{"a dead router is found", testDeadRouter},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, opts) })
	}
}

func testCompleteReport(t *testing.T, opts options) {
	t.Setenv("TMPDIR", t.TempDir())
	var text, progress bytes.Buffer
	if err := runAll(t.Context(), opts, output{report: &text, progress: &progress}); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	t.Log(text.String())
	for _, want := range []string{
		"4 requests at a time, an agent that takes 5ms: at most 800 good answers/s", "baseline: bare server",
		"≥ 0.90", "≤ 50", "≤ 5", "ratio, goal ≤ 1.50", "headers", "body", "reading", "Dry runs", "after dry runs", "failures: 0",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got no %q in the report", want)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("got files %v, %v, want none", left, err)
	}
}

// callbackWriter calls fn once, when the text is written.
type callbackWriter struct {
	text string
	fn   func()
}

func (w *callbackWriter) Write(p []byte) (int, error) {
	if w.fn != nil && strings.Contains(string(p), w.text) {
		w.fn()
		w.fn = nil
	}
	return len(p), nil
}

func testInterrupted(t *testing.T, opts options) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var text bytes.Buffer
	err := runAll(ctx, opts, output{report: &text, progress: &callbackWriter{"router: 5× the peak", cancel}})
	if !errors.Is(err, context.Canceled) || text.Len() != 0 {
		t.Errorf("got %v and a report of %d bytes, want context canceled and none", err, text.Len())
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("got files %v, %v, want none", left, err)
	}
}

func testDeadRouter(t *testing.T, opts options) {
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
