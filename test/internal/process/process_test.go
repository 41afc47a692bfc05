package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/run"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(launchIn); dir != "" {
		launchForEver(dir)
	}
	goleak.VerifyTestMain(m)
}

func newTestLog(t *testing.T) (_ *routerLog, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return l, path
}

// wasSeen reports whether the awaited line was written.
func (l *routerLog) wasSeen(text string) bool {
	select {
	case <-l.awaited[text].seen:
		return true
	default:
		return false
	}
}

const sampleLog = `{"level":"INFO","msg":"` + LogListening + `127.0.0.1:4711","agents":6}
{"level":"ERROR","msg":"the audit log cannot be written","err":"x"}
{"level":"WARN","msg":"task not done"}
{"level":"ERROR","msg":"the audit log cannot be written","err":"y"}
{"level":"INFO","msg":"open requests resumed","requests":3}
caprouter: it ends
`

func TestLog_ReadsLinesInPieces(t *testing.T) {
	for _, size := range []int{1, 7, 64, len(sampleLog)} {
		l, path := newTestLog(t)
		for piece := range slices.Chunk([]byte(sampleLog), size) {
			if _, err := l.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := l.listenAddr(), "127.0.0.1:4711"; got != want {
			t.Errorf("pieces of %d: got address %q, want %q", size, got, want)
		}
		for _, text := range []string{LogListening, LogResumed} {
			if !l.wasSeen(text) || l.awaited[text].at.IsZero() {
				t.Errorf("pieces of %d: %q was not found", size, text)
			}
		}
		if got, want := l.tail(), strings.TrimSpace(sampleLog); got != want {
			t.Errorf("pieces of %d: got tail %q, want %q", size, got, want)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != sampleLog {
			t.Errorf("pieces of %d: got file %q (%v), want the whole log", size, got, err)
		}
	}
}

func TestLog_IgnoresUnfinishedLine(t *testing.T) {
	l, _ := newTestLog(t)
	if _, err := l.Write([]byte(`{"level":"INFO","msg":"` + LogListening + `127.0.0.1:47`)); err != nil {
		t.Fatal(err)
	}
	if l.wasSeen(LogListening) {
		t.Error("an incomplete line was read")
	}
}

func TestLog_BoundsTail(t *testing.T) {
	l, _ := newTestLog(t)
	if _, err := l.Write([]byte(strings.Repeat("{\"level\":\"INFO\"}\n", 10*tailLines))); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(l.tail(), "\n") + 1; got != tailLines {
		t.Errorf("got %d lines, want %d", got, tailLines)
	}
}

func TestStartRouter_ReturnsLogOfFailedStart(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "broken")
	script := "#!/bin/sh\necho 'caprouter: the disk is gone' >&2\nexit 1\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := StartRouter(t.Context(), binary, filepath.Join(dir, "caprouter.yaml"))
	if err == nil || !strings.Contains(err.Error(), "the router exited") || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("got %v, want an error with the end of the log", err)
	}
}

func TestWritePatched_SelectsPatchedFiles(t *testing.T) {
	const pkg, library = "github.com/caprouter/caprouter/internal/run", "go.uber.org/goleak"
	dir := t.TempDir()
	flags, err := writePatched(t.Context(), dir, []Patch{
		{Package: pkg, File: "group.go", Old: "package run\n", New: "package run // one\n"},
		{Package: pkg, File: "group.go", Old: "// one", New: "// two"},
		{Package: pkg, File: "added.go", New: "package run\n"},
		{Package: library, File: "added.go", New: "package goleak\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"patched-0-group.go", "patched-2-added.go", "module-3/added.go", "module-3/go.mod"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	out, err := runGo(t.Context(), append(append([]string{"list", "-f", "{{.Dir}} {{.GoFiles}}"}, flags...), pkg, library)...)
	if err != nil || !strings.Contains(out, "/internal/run [added.go ") || !strings.Contains(out, filepath.Join(dir, "module-3")+" [added.go ") {
		t.Errorf("got packages %s, %v, want both with the added file", out, err)
	}
	if patched, err := os.ReadFile(filepath.Join(dir, "patched-0-group.go")); err != nil || !strings.HasPrefix(string(patched), "package run // two\n") {
		t.Errorf("got %.40q, %v, want both patches", patched, err)
	}
	for name, p := range map[string]Patch{
		"text that does not occur": {Package: pkg, File: "group.go", Old: "no such text"},
		"text that is repeated":    {Package: pkg, File: "group.go", Old: "func"},
		"existing file":            {Package: pkg, File: "group.go", New: "package run"},
	} {
		if _, err := writePatched(t.Context(), t.TempDir(), []Patch{p}); err == nil || !strings.Contains(err.Error(), "group.go") {
			t.Errorf("%s: got %v, want an error with the name of the file", name, err)
		}
	}
}

func TestProcess_DumpStacksWaitsForOutput(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "router")
	script := "#!/bin/sh\ntrap 'echo goroutine 1 >&2; exit 2' QUIT\necho '" + LogListening + "127.0.0.1:1' >&2\nwhile :; do sleep 0.01; done\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := StartRouter(t.Context(), binary, filepath.Join(dir, "caprouter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DumpStacks(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "router.log")); err != nil || !strings.Contains(string(got), "goroutine 1") {
		t.Errorf("got log %q, %v, want the stacks", got, err)
	}
}

func TestCleanEnvironment_HasNoConfiguration(t *testing.T) {
	t.Setenv("CAPROUTER_LISTEN", "0.0.0.0:1")
	t.Setenv("GEMINI_API_KEY", "key")
	t.Setenv("OTHER", "kept")
	got := cleanEnvironment()
	for _, name := range []string{"CAPROUTER_LISTEN=", "GEMINI_API_KEY="} {
		if slices.ContainsFunc(got, func(entry string) bool { return strings.HasPrefix(entry, name) }) {
			t.Errorf("got %s, want no such variable", name)
		}
	}
	if !slices.Contains(got, "OTHER=kept") {
		t.Error("got no OTHER, want OTHER=kept")
	}
}

func TestServeParent_ServesUntilParentCloses(t *testing.T) {
	in, parent := io.Pipe()
	output, out := io.Pipe()
	group := run.New(t.Context())
	group.Go("role", func(ctx context.Context) error {
		return serveParent(ctx, "127.0.0.1:1", in, out, func(ctx context.Context) error { <-ctx.Done(); return nil })
	})
	if got, err := bufio.NewReader(output).ReadString('\n'); err != nil || got != "127.0.0.1:1\n" {
		t.Errorf("got address %q, %v", got, err)
	}
	if err := errors.Join(parent.Close(), group.Wait()); err != nil {
		t.Error(err)
	}
}
