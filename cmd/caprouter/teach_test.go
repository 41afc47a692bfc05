package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

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
		if got := testkit.Receive(t, code); got != exitError || stderr.String() != "caprouter: interrupted\n" {
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

func TestApplyEdits_WritesAllOrNone(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	want := func(path, text string) {
		t.Helper()
		if data, _ := os.ReadFile(path); string(data) != text {
			t.Errorf("%s: got %q, want %q", path, data, text)
		}
	}
	write("a", "old")
	write("b", "edited meanwhile")
	a, b := fileEdit{"a", []byte("old"), []byte("new")}, fileEdit{"b", []byte("read"), []byte("new")}
	if err := applyEdits(t.Context(), []fileEdit{a, b}); err == nil || !strings.Contains(err.Error(), "b was changed meanwhile") {
		t.Errorf("got %v, want an error because b was changed", err)
	}
	want("a", "old")
	want("b", "edited meanwhile")

	b.before = []byte("edited meanwhile")
	if err := applyEdits(t.Context(), []fileEdit{a, b, {"c", nil, []byte("created")}}); err != nil {
		t.Fatal(err)
	}
	want("a", "new")
	want("b", "new")
	want("c", "created")
	if info, err := os.Stat("a"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got mode %v, %v, want 0640 as before", info.Mode(), err)
	}
	if err := restoreFiles([]fileEdit{a, {"c", nil, nil}}); err != nil {
		t.Fatal(err)
	}
	want("a", "old")
	if _, err := os.Stat("c"); err == nil {
		t.Error("got c kept, want it removed")
	}
}

// Concurrent commands that edit one file do not overwrite each other: each writes, or fails because
// the file was changed meanwhile.
func TestApplyEdits_ConcurrentCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	const commands, lines = 8, 4
	run.ForEach(t.Context(), commands, commands, func(ctx context.Context, i int) {
		for written := 0; written < lines; {
			before, err := readForEdit("cases.yaml")
			if err != nil {
				t.Error(err)
				return
			}
			after := fmt.Appendf(slices.Clone(before), "line %d of %d\n", written, i)
			switch err := applyEdits(ctx, []fileEdit{{"cases.yaml", before, after}}); {
			case err == nil:
				written++
			case !strings.Contains(err.Error(), "changed meanwhile"):
				t.Error(err)
				return
			}
		}
	})
	data, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "\n"); got != commands*lines {
		t.Errorf("got %d lines, want %d, all that were reported as written", got, commands*lines)
	}
}
