package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestWithRouters builds the router once for all tests that kill it.
func TestWithRouters(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and kills it several times")
	}
	root := t.TempDir()
	binary, err := build(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	opts := options{
		cycles: 6, open: 80, callers: 4, life: 300 * time.Millisecond, settle: time.Minute, seed: uint64(time.Now().UnixNano()),
	}
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, at place, opts options)
	}{
		{"nothing is lost in six cycles", func(t *testing.T, at place, opts options) { holds(t, runCycles, at, opts) }},
		{"nothing is lost of what was open", func(t *testing.T, at place, opts options) { holds(t, runOpen, at, opts) }},
		{"a router that forgets is found", testForgetful},
		{"a run that is broken off leaves nothing", testBrokenOff},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, place{dir: t.TempDir(), binary: binary}, opts) })
	}
}

// holds fails the test with all that a part of the run finds wrong.
func holds(t *testing.T, part func(context.Context, place, options) (*report, error), at place, opts options) {
	r, err := part(t.Context(), at, opts)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	r.print(&text)
	t.Log(text.String())
	for _, f := range r.findings {
		if len(f.wrong) > 0 {
			t.Errorf("%s: %d, want 0: %v", f.what, len(f.wrong), f.wrong)
		}
	}
}

// The checks are not satisfied by whatever a router does: one that forgets
// everything is found out.
func testForgetful(t *testing.T, at place, opts options) {
	w, err := newWorld(t.Context(), at, opts.seed)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.callers.post(t.Context(), newOrder(plainPrompt, "key", requestTime, true, 1)) {
		t.Fatal("the request was not accepted")
	}
	if err := w.crash(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dataDir(at.dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.up(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.look(t.Context(), w.ledger.all())
	if found := wrongs(w.ledger); len(found) != 1 || !strings.Contains(keysOf(found), "without an end") {
		t.Errorf("found %v, want the one request that is lost", found)
	}
}

func testBrokenOff(t *testing.T, at place, opts options) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := newWorld(ctx, at, opts.seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.up(ctx); err != nil {
		t.Fatal(err)
	}
	pid := w.router.cmd.Process.Pid
	cancel()
	if err := w.close(); err != nil {
		t.Errorf("close: got %v, want nil", err)
	}
	if alive(pid) {
		t.Errorf("the router, process %d, is still there", pid)
	}
}
