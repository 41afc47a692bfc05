package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caprouter/caprouter/test/internal/process"
)

// Builds the router once for all tests that kill it.
func TestParts_WithRouter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and kills it several times")
	}
	root := t.TempDir()
	binary, err := process.Build(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	opts := options{
		cycles: 6, openRequests: 80, callers: 4, maxLifetime: 300 * time.Millisecond, endTimeout: time.Minute, seed: 1,
	}
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, at workspace, opts options)
	}{
		{"six cycles", func(t *testing.T, at workspace, opts options) { requireNoViolations(t, runCycles, at, opts) }},
		{"open requests", func(t *testing.T, at workspace, opts options) { requireNoViolations(t, runOpen, at, opts) }},
		{"lost data is found", testLostData},
		{"an interrupted run stops the router", testInterrupted},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, workspace{dir: t.TempDir(), binary: binary}, opts) })
	}
}

// requireNoViolations runs a part and fails the test with its violations.
func requireNoViolations(t *testing.T, part func(context.Context, workspace, options) (*report, error), at workspace, opts options) {
	r, err := part(t.Context(), at, opts)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	r.printTo(&text)
	t.Log(text.String())
	for _, f := range r.checks {
		if len(f.violations) > 0 {
			t.Errorf("%s: %d, want 0: %v", f.name, len(f.violations), f.violations)
		}
	}
}

// The checks must find a router that loses its data.
func testLostData(t *testing.T, at workspace, opts options) {
	w, err := newTestbed(t.Context(), at, opts.seed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.startRouter(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.callers.submitOrder(t.Context(), newOrder(plainPrompt, "key", requestTimeoutMS, true, 1)) {
		t.Fatal("the request was not accepted")
	}
	if err := w.killRouter(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dataDir(at.dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.startRouter(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.fetchRequests(t.Context(), w.ledger.allRequests())
	if found := violationsOf(w.ledger); len(found) != 1 || !strings.Contains(keysOf(found), "without an end") {
		t.Errorf("got %v, want one lost request", found)
	}
}

func testInterrupted(t *testing.T, at workspace, opts options) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := newTestbed(ctx, at, opts.seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.startRouter(ctx); err != nil {
		t.Fatal(err)
	}
	pid := w.router.PID()
	cancel()
	if err := w.close(); err != nil {
		t.Errorf("close: got %v, want nil", err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("the router, process %d, still runs", pid)
	}
}
