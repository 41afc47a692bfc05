package capabilities

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

func TestNewWatcherNeedsGoodFile(t *testing.T) {
	path := newFile(t)
	apply := func(*Snapshot) error { t.Error("apply was called"); return nil }
	if _, err := NewWatcher(WatchConfig{Path: path}, apply); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: got error %v, want %v", err, os.ErrNotExist)
	}
	writeFile(t, path, brokenRegistry)
	_, err := NewWatcher(WatchConfig{Path: path}, apply)
	if _, ok := errors.AsType[strictyaml.Errors](err); !ok {
		t.Errorf("broken file: got error %v, want strictyaml.Errors", err)
	}
	writeFile(t, path, registryOf("a"))
	refused := errors.New("no room")
	if _, err := NewWatcher(WatchConfig{Path: path}, func(*Snapshot) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("apply fails: got error %v, want %v", err, refused)
	}
}

func TestStatusOfFirstLoad(t *testing.T) {
	path := newFile(t)
	writeFile(t, path, registryOf("a"))
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	w, err := NewWatcher(WatchConfig{Path: path, Now: func() time.Time { return now }}, func(*Snapshot) error { return nil })
	must(t, err)
	if got, want := w.Status(), (Status{Version: versionOf(t, registryOf("a")), LoadedAt: now}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	later := now.Add(time.Hour)
	now = later
	must(t, w.Reload(t.Context()))
	if got := w.Status(); got.LoadedAt.Equal(later) || got.Reloads != 0 {
		t.Errorf("nothing new: got %+v, want the time of the first load", got)
	}
	writeFile(t, path, registryOf("b"))
	must(t, w.Reload(t.Context()))
	if got, want := w.Status(), (Status{Version: versionOf(t, registryOf("b")), LoadedAt: later, Reloads: 1}); got != want {
		t.Errorf("reloaded: got %+v, want %+v", got, want)
	}
}

func TestReload(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), false)
	must(t, w.Reload(t.Context()))
	w.wantNothing()

	w.write(registryOf("first") + "# a comment\n")
	must(t, w.Reload(t.Context()))
	w.wantNothing()

	w.write(registryOf("second"))
	must(t, w.Reload(t.Context()))
	w.wantApplied("second")
	w.wantLogged(reloaded)
	w.wantNothing()
}

// An error that lasts is told once; each other one is told as well.
func TestReloadLogsDistinctErrorsOnce(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), false)
	fails := func(content, want string) {
		t.Helper()
		if content != "" {
			w.write(content)
		}
		if err := w.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("Reload: got error %v, want …%s…", err, want)
		}
		w.wantStale(true)
	}
	fails(brokenRegistry, "intents")
	w.wantLogged("intents")
	for range 3 {
		fails("", "intents")
	}
	fails(brokenRegistry+"# the same mistake\n", "intents")
	w.wantNothing()
	fails("clients: []\n", "must be a mapping")
	w.wantLogged("must be a mapping")
	fails("", "must be a mapping")
	must(t, os.Remove(w.path))
	fails("", "no such file")
	w.wantLogged("no such file")
	fails("clients: []\n", "must be a mapping")
	w.wantLogged("must be a mapping")
	w.wantNothing()
	if s := w.Status(); s.Failures != 4 || s.Reloads != 0 {
		t.Errorf("got %d failures and %d reloads, want 4 and 0", s.Failures, s.Reloads)
	}
	w.write(registryOf("first"))
	must(t, w.Reload(t.Context()))
	w.wantLogged(goodAgain)
	w.wantStale(false)
	w.wantNothing()
}

// A snapshot that cannot be applied leaves the one in force; it is tried again,
// since the file is not to blame.
func TestReloadWhenApplyFails(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), false)
	refused := errors.New("no room")
	w.refuse(refused)
	w.write(registryOf("second"))
	for range 2 {
		if err := w.Reload(t.Context()); !errors.Is(err, refused) {
			t.Fatalf("Reload: got error %v, want %v", err, refused)
		}
	}
	w.wantLogged("no room")
	w.wantNothing()
	if s := w.Status(); !s.Stale || s.Failures != 1 || s.Version != versionOf(t, registryOf("first")) {
		t.Errorf("got %+v, want the first version, stale, one failure", s)
	}
	w.refuse(nil)
	must(t, w.Reload(t.Context()))
	w.wantApplied("second")
	w.wantStale(false)
}

// The poll tries again by itself what could not be applied.
func TestRunRetriesApply(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	w.refuse(errors.New("no room"))
	w.replace(registryOf("second"))
	w.wantLogged("no room")
	w.refuse(nil)
	w.wantApplied("second")
}

func TestReloadReadsFileThatBecomesReadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("everything is readable to root")
	}
	w := watch(t, newFile(t), registryOf("first"), false)
	w.write(registryOf("second"))
	must(t, os.Chmod(w.path, 0))
	if err := w.Reload(t.Context()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Reload: got error %v, want %v", err, os.ErrPermission)
	}
	must(t, os.Chmod(w.path, 0o600))
	must(t, w.Reload(t.Context()))
	w.wantApplied("second")
}

func TestReloadEndsWithItsContext(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), false)
	<-w.turn // a load that takes for ever
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Reload(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Reload: got error %v, want %v", err, context.Canceled)
	}
	w.turn <- struct{}{}
}

// Reloads from many sides apply one snapshot at a time, each version once.
func TestReloadConcurrently(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	w.replace(registryOf("second"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := w.Reload(t.Context()); err != nil {
					t.Errorf("Reload: got error %v, want none", err)
				}
				_ = w.Status()
			}
		})
	}
	wg.Wait()
	w.wantApplied("second")
	if got := w.Status().Reloads; got != 1 {
		t.Errorf("got %d reloads, want 1", got)
	}
}

// A glance reads a file only when the system says that it changed, once that can
// be trusted.
func TestGlance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	writeFile(t, path, registryOf("a"))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, old, old))
	applied := 0
	l := loader{path: path, apply: func(*Snapshot) error { applied++; return nil }}
	if _, err := l.load(); err != nil || applied != 1 {
		t.Fatalf("load: got error %v and %d applied, want 1", err, applied)
	}
	// Another content under the same mark goes unseen by a glance only.
	writeFile(t, path, registryOf("b"))
	must(t, os.Chtimes(path, old, old))
	if _, err := l.glance(); err != nil || applied != 1 {
		t.Errorf("glance at the same mark: got error %v and %d applied, want 1", err, applied)
	}
	if _, err := l.load(); err != nil || applied != 2 {
		t.Errorf("load: got error %v and %d applied, want 2", err, applied)
	}
	for name, change := range map[string]func() error{
		"time": func() error { writeFile(t, path, registryOf("c")); return nil },
		"size": func() error { writeFile(t, path, registryOf("longer")); return os.Chtimes(path, old, old) },
		"file": func() error {
			writeFile(t, path+"2", registryOf("d"))
			return errors.Join(os.Chtimes(path+"2", old, old), os.Rename(path+"2", path))
		},
	} {
		before := applied
		must(t, change())
		if _, err := l.glance(); err != nil || applied != before+1 {
			t.Errorf("glance after a change of %s: got error %v and %d applied, want %d", name, err, applied, before+1)
		}
		must(t, os.Chtimes(path, old, old))
		if _, err := l.glance(); err != nil {
			t.Error(err)
		}
	}
}

func TestSettling(t *testing.T) {
	start := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	const quiet = 100 * time.Millisecond
	s := settling{quiet: quiet}
	if s.waiting() {
		t.Error("before any change: got waiting")
	}
	for _, tt := range []struct{ after, want time.Duration }{
		{0, quiet},
		{50 * time.Millisecond, quiet},
		{899 * time.Millisecond, quiet},
		{950 * time.Millisecond, 50 * time.Millisecond}, // patience ends a second after the first
		{1000 * time.Millisecond, 0},
		{5000 * time.Millisecond, 0},
	} {
		if got := s.event(start.Add(tt.after)); got != tt.want {
			t.Errorf("event after %v: got a wait of %v, want %v", tt.after, got, tt.want)
		}
		if !s.waiting() {
			t.Errorf("event after %v: got not waiting", tt.after)
		}
	}
	s.settled()
	if s.waiting() {
		t.Error("after the look: got waiting")
	}
	if got := s.event(start.Add(time.Hour)); got != quiet {
		t.Errorf("next change: got a wait of %v, want %v", got, quiet)
	}
}
