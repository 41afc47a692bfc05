package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caprouter/caprouter/test/internal/process"
)

// Builds the router once for all tests that kill it. The driver itself is a command,
// and .ci/run makes a short run of it.
func TestTestbed_WithRouter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and kills it several times")
	}
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, binary string)
	}{
		{"lost data is found", testLostData},
		{"an interrupted run stops the router", testInterrupted},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, binary) })
	}
}

// The checks must find a router that loses its data.
func testLostData(t *testing.T, binary string) {
	w, err := newTestbed(t.Context(), binary, t.TempDir(), 1)
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
	if !w.callers.submitOrder(t.Context(), newOrder(plainPrompt, "key", requestTimeoutMS, true)) {
		t.Fatal("the request was not accepted")
	}
	if err := w.killRouter(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dataDir(w.dir)); err != nil {
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

func testInterrupted(t *testing.T, binary string) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := newTestbed(ctx, binary, t.TempDir(), 1)
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
