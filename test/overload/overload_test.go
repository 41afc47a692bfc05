package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tiny is a run of which no figure means anything.
func tiny() options {
	return options{lasts: time.Second, work: 5 * time.Millisecond, slow: 20, inFlight: 4, connections: 64}
}

// TestWholeRuns builds the router once for all tests that start it.
func TestWholeRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the router and measures it")
	}
	opts := tiny()
	var err error
	if opts.binary, err = build(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		run  func(*testing.T, options)
	}{
		{"every figure is printed and nothing is wrong", testEveryFigure},
		{"a run that is broken off leaves nothing", testBrokenOff},
		{"a router that dies is found", testDies},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, opts) })
	}
}

func testEveryFigure(t *testing.T, opts options) {
	t.Setenv("TMPDIR", t.TempDir())
	var text, progress bytes.Buffer
	if err := overload(t.Context(), opts, output{report: &text, progress: &progress}); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	t.Log(text.String())
	for _, want := range []string{
		"4 requests at a time, an agent that takes 5ms: at most 800 good answers/s", "floor: bare server",
		"≥ 0.90", "≤ 50", "≤ 5", "ratio, goal ≤ 1.50", "headers", "body", "reading", "Dry runs", "after dry runs", "wrong: 0",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// when calls fn once, when the text is written.
type when struct {
	text string
	fn   func()
}

func (w *when) Write(p []byte) (int, error) {
	if w.fn != nil && strings.Contains(string(p), w.text) {
		w.fn()
		w.fn = nil
	}
	return len(p), nil
}

func testBrokenOff(t *testing.T, opts options) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var text bytes.Buffer
	err := overload(ctx, opts, output{report: &text, progress: &when{"router: 5× the peak", cancel}})
	if !errors.Is(err, context.Canceled) || text.Len() != 0 {
		t.Errorf("got %v and a report of %d bytes, want context canceled and none", err, text.Len())
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func testDies(t *testing.T, opts options) {
	w := &world{opts: opts, dir: t.TempDir(), m: &measurer{progress: &bytes.Buffer{}, connections: opts.connections}, wrong: &wrongs{}}
	if err := w.start(t.Context()); err != nil {
		t.Fatal(errors.Join(err, w.close()))
	}
	router := w.router
	if err := router.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-router.exited
	if err := w.calmDown(t.Context(), "now"); err == nil || !strings.Contains(err.Error(), "the router died") {
		t.Errorf("got %v, want that it died", err)
	}
	r := &report{}
	w.end(t.Context(), r)
	if r.wrongs != 1 || !strings.Contains(r.wrong[0], "the router died") {
		t.Errorf("at the end: %d, %v, want that it died", r.wrongs, r.wrong)
	}
}

func TestStartTellsWhyNot(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "router")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho '{\"level\":\"ERROR\",\"msg\":\"no disk\"}' >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := startRouter(t.Context(), script, filepath.Join(dir, "caprouter.yaml")); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("got %v, want what its log says", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := build(over, dir); err == nil {
		t.Error("built after the end")
	}
}

func TestOptionsThatCannotBeMeasured(t *testing.T) {
	for name, change := range map[string]func(*options){
		"too short":              func(o *options) { o.lasts = time.Millisecond },
		"too long":               func(o *options) { o.lasts = time.Hour },
		"nothing in flight":      func(o *options) { o.inFlight = 0 },
		"no work":                func(o *options) { o.work = 0 },
		"too few connections":    func(o *options) { o.connections = 2*o.inFlight - 1 },
		"fewer than none":        func(o *options) { o.slow = -1 },
		"more files than anyone": func(o *options) { o.slow = 1 << 40 },
	} {
		opts := tiny()
		change(&opts)
		if err := opts.check(); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
	opts := tiny()
	if err := opts.check(); err != nil {
		t.Error(err)
	}
}
