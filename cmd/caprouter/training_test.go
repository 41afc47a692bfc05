package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

func TestNewTrainingReport_ShowsLongTraining(t *testing.T) {
	const erase = "\r\x1b[K"
	tests := []struct {
		name     string
		step     time.Duration // between two reports
		terminal bool
		want     string
	}{
		{"long", quietTraining / 2, true, erase + "  training the lexical classifier: 50%" + erase + "  training the lexical classifier: 75%" + erase},
		{"short", quietTraining / 4, true, ""},
		{"no terminal", quietTraining, false, ""},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		now := time.Now()
		report := newTrainingReport(&terminal.ProgressLine{Out: &out, Terminal: tt.terminal}, func() time.Time { return now })
		for done := range 4 {
			now = now.Add(tt.step)
			report(done+1, 4)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Ctrl-C ends doctor without the checks that remain.
func TestDoctor_Interrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "capabilities.yaml")
	if err := os.WriteFile(file, []byte("clients:\n  payer:\n    match: { intent: [pay], domains: [bills] }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errOut strings.Builder
	var out strings.Builder
	code := execute(ctx, []string{"doctor", "--registry", file, "--data-dir", t.TempDir()}, strings.NewReader(""), io.MultiWriter(cancelAt{"configuration", cancel}, &out), &errOut)
	if code != cmdline.ExitError || errOut.String() != "caprouter: interrupted\n" {
		t.Errorf("got exit code %d and %q, want 1 and interrupted", code, errOut.String())
	}
	if strings.Contains(out.String(), "1 agent") {
		t.Errorf("got %q, want nothing after the check of the configuration", out.String())
	}
}
