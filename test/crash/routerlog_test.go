package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// alive reports whether a process that was waited for is still there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

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

// seen reports whether the mark has come.
func (l *routerLog) seen(mark string) bool {
	select {
	case <-l.marks[mark].seen:
		return true
	default:
		return false
	}
}

const logged = `{"level":"INFO","msg":"listening on 127.0.0.1:4711","agents":6}
{"level":"ERROR","msg":"the audit log cannot be written","err":"x"}
{"level":"WARN","msg":"task not done"}
{"level":"ERROR","msg":"the audit log cannot be written","err":"y"}
{"level":"INFO","msg":"open requests were taken over","requests":3}
caprouter: it ends
`

func TestRouterLogReadsWhateverPiecesCome(t *testing.T) {
	for _, size := range []int{1, 7, 64, len(logged)} {
		l, path := newTestLog(t)
		for rest := logged; rest != ""; {
			n := min(size, len(rest))
			if _, err := l.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got, want := l.addr(), "127.0.0.1:4711"; got != want {
			t.Errorf("pieces of %d: listens on %q, want %q", size, got, want)
		}
		for _, mark := range []string{markListening, markTakenOver} {
			if !l.seen(mark) || l.marks[mark].at.IsZero() {
				t.Errorf("pieces of %d: %q was not noticed", size, mark)
			}
		}
		want := map[string]int{"the audit log cannot be written": 2, "not a line of the log: caprouter: it ends": 1}
		if diff := cmp.Diff(want, l.complaints()); diff != "" {
			t.Errorf("pieces of %d: complaints (-want +got):\n%s", size, diff)
		}
		if got, want := l.tail(), strings.TrimSpace(logged); got != want {
			t.Errorf("pieces of %d: tail %q, want %q", size, got, want)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != logged {
			t.Errorf("pieces of %d: the file holds %q (%v), want all of it", size, got, err)
		}
	}
}

func TestRouterLogWaitsForTheEndOfALine(t *testing.T) {
	l, _ := newTestLog(t)
	if _, err := l.Write([]byte(`{"level":"INFO","msg":"listening on 127.0.0.1:47`)); err != nil {
		t.Fatal(err)
	}
	if l.seen(markListening) {
		t.Error("half a line was taken for a whole one")
	}
}

func TestRouterLogTailIsBounded(t *testing.T) {
	l, _ := newTestLog(t)
	if _, err := l.Write([]byte(strings.Repeat("{\"level\":\"INFO\"}\n", 10*tailLines))); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(l.tail(), "\n") + 1; got != tailLines {
		t.Errorf("got %d lines, want %d", got, tailLines)
	}
}

func TestARouterThatDoesNotStartIsAnError(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "broken")
	script := "#!/bin/sh\necho 'caprouter: the disk is gone' >&2\nexit 1\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := start(t.Context(), binary, filepath.Join(dir, "caprouter.yaml"))
	if err == nil || !strings.Contains(err.Error(), "the router ended") || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("got %v, want an error with the end of the log", err)
	}
}
