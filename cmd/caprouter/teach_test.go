package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit"
)

// cancelAt cancels a context when the text is written.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.text) {
		c.cancel()
	}
	return len(b), nil
}

// Ctrl-C at a question ends teach, even if the input is blocked, and changes no file.
func TestTeach_InterruptedLeavesFiles(t *testing.T) {
	const registry = "clients:\n  payer:\n    match: { intent: [pay], domains: [bills] }\n"
	for question, answers := range map[string]string{"Which agent": "", "Write?": "payer\n"} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("capabilities.yaml", []byte(registry), 0o600); err != nil {
			t.Fatal(err)
		}
		in, typed := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		group := run.New(t.Context())
		if answers != "" { // an empty write would wait for a read that may not happen
			group.Go("type", func(context.Context) error { _, err := io.WriteString(typed, answers); return err })
		}
		var stderr strings.Builder
		code := make(chan int, 1)
		group.Go("teach", func(context.Context) error {
			code <- execute(ctx, []string{"teach", "settle it"}, in, cancelAt{question, cancel}, &stderr)
			return nil
		})
		if got := testkit.Receive(t, code); got != cmdline.ExitError || stderr.String() != "caprouter: interrupted\n" {
			t.Errorf("%s: got exit code %d and %q, want 1 and interrupted", question, got, stderr.String())
		}
		typed.Close()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile("capabilities.yaml"); err != nil || string(data) != registry {
			t.Errorf("%s: got the registry %q, %v, want it unchanged", question, data, err)
		}
		if _, err := os.Stat("cases.yaml"); err == nil {
			t.Errorf("%s: got a case file, want none", question)
		}
	}
}

// With --expect, --expect-intent and --yes, teach asks nothing, so that a script needs no input.
func TestTeach_YesAsksNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	const registry = "clients:\n  payer:\n    match: { intent: [pay, refund], domains: [bills] }\n"
	if err := os.WriteFile("capabilities.yaml", []byte(registry), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	args := []string{"teach", "settle it", "--expect", "payer", "--expect-intent", "pay", "--yes"}
	if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != cmdline.ExitOK {
		t.Fatalf("got exit code %d, %q and %q, want 0", code, stdout.String(), stderr.String())
	}
	if out := stdout.String(); strings.Contains(out, "Write?") || !strings.Contains(out, "wrote capabilities.yaml") {
		t.Errorf("got %q, want no question, and the written files", out)
	}
	if data, err := os.ReadFile("capabilities.yaml"); err != nil || !strings.Contains(string(data), "settle it") {
		t.Errorf("got the registry %q, %v, want the example", data, err)
	}
}
