package capabilities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// registryOf is a registry file with one agent of that name.
func registryOf(agent string) string {
	return "clients:\n  " + agent + ":\n    match: {intent: [x], domains: [d]}\n"
}

const brokenRegistry = "clients:\n  a: {match: {intents: [x]}}\n"

// watched is a watcher on a real file, whose every move can be waited for.
type watched struct {
	*Watcher
	t    *testing.T
	path string

	mu       sync.Mutex
	applyErr error       // what apply answers
	applied  chan string // the agents of each snapshot applied, joined
	logged   chan string // each line of the log
}

// watch writes the file and starts a watcher on it; run says whether it watches
// by itself or only when it is told to.
func watch(t *testing.T, path, content string, run bool) *watched {
	t.Helper()
	w := &watched{t: t, path: path, applied: make(chan string, 4096), logged: make(chan string, 4096)}
	if content != "" {
		w.write(content)
	}
	var err error
	w.Watcher, err = NewWatcher(WatchConfig{
		Path: path, Debounce: 5 * time.Millisecond, Poll: 20 * time.Millisecond,
		Logger: slog.New(lines{w.logged}),
	}, w.apply)
	if err != nil {
		t.Fatalf("NewWatcher: %v", err)
	}
	w.wantApplied("first")
	if run {
		w.run()
	}
	return w
}

// run watches until the test ends.
func (w *watched) run() {
	ended := make(chan error)
	go func() { ended <- w.Run(w.t.Context()) }()
	w.t.Cleanup(func() { // the context has just ended
		if err := <-ended; err != nil {
			w.t.Errorf("Run: got error %v, want none", err)
		}
	})
}

func (w *watched) apply(s *Snapshot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.applyErr != nil {
		return w.applyErr
	}
	var ids []string
	for _, a := range s.Catalogue.Agents {
		ids = append(ids, a.ID)
	}
	w.applied <- strings.Join(ids, ",")
	return nil
}

func (w *watched) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applyErr = err
}

// write writes the file in place, as a plain program does.
func (w *watched) write(content string) { writeFile(w.t, w.path, content) }

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace writes another file and renames it over, as an editor does.
func (w *watched) replace(content string) {
	w.t.Helper()
	next := filepath.Join(filepath.Dir(w.path), "next.tmp")
	writeFile(w.t, next, content)
	must(w.t, os.Rename(next, w.path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantApplied waits for the next snapshot, which must have these agents.
func (w *watched) wantApplied(agents string) {
	w.t.Helper()
	if got := receive(w.t, w.applied); got != agents {
		w.t.Fatalf("applied a registry of %q, want %q", got, agents)
	}
}

// wantLogged waits for the next line of the log, which must contain the text.
func (w *watched) wantLogged(text string) {
	w.t.Helper()
	if got := receive(w.t, w.logged); !strings.Contains(got, text) {
		w.t.Fatalf("logged %q, want …%s…", got, text)
	}
}

// wantNothing fails if anything was applied or logged that was not waited for.
func (w *watched) wantNothing() {
	w.t.Helper()
	select {
	case got := <-w.applied:
		w.t.Errorf("applied a registry of %q, want nothing applied", got)
	case got := <-w.logged:
		w.t.Errorf("logged %q, want nothing logged", got)
	default:
	}
}

func (w *watched) wantStale(stale bool) {
	w.t.Helper()
	if s := w.Status(); s.Stale != stale || (s.Err != nil) != stale {
		w.t.Errorf("got stale %v and error %v, want stale %v", s.Stale, s.Err, stale)
	}
}

func receive(t *testing.T, from <-chan string) string {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("nothing happened for a minute"))
	defer cancel()
	select {
	case got := <-from:
		return got
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
		return ""
	}
}

// lines is a log whose lines arrive on a channel.
type lines struct{ to chan<- string }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	l.to <- b.String()
	return nil
}

func (lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l lines) WithGroup(string) slog.Handler          { return l }
