// Package filewatch reports changes of the content of a file.
//
//	w, err := filewatch.New(filewatch.Config{Path: "capabilities.yaml", OnChange: reload})
//	g.Go("watch the registry", w.Run)
//
// A [Watcher] watches the directory, not the file: editors replace a file by
// another one, and Kubernetes swaps a symbolic link further up ("..data"), so a
// watch on the file would keep observing the old one. Every event in the directory
// is a reason to read the file after a quiet period, because files are written in
// several steps. Content is compared by checksum. A poll covers changes without an
// event: links into another directory, network file systems, a directory that was
// removed and created again.
package filewatch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Config specifies the file to watch. Path and OnChange are required.
type Config struct {
	Path string
	// OnChange receives new content, or a new error of reading the file. An error
	// that persists is reported once. Calls do not overlap.
	OnChange func(content []byte, err error)
	Read     func(path string) ([]byte, error) // nil = os.ReadFile
	Debounce time.Duration                     // quiet period before a changed file is read; 0 = 100 ms
	Poll     time.Duration                     // interval of checks without an event; 0 = 2 s
	Logger   *slog.Logger                      // nil = silent
}

// Watcher observes the content of one file. Its methods are safe for concurrent
// use.
type Watcher struct {
	cfg Config

	mu   sync.Mutex
	file fileStat     // at the last read
	last *readOutcome // of the last read; nil before the first one
}

// New returns a Watcher that has not read the file yet.
func New(cfg Config) (*Watcher, error) {
	if cfg.Path == "" || cfg.OnChange == nil {
		return nil, errors.New("filewatch: Path and OnChange are required")
	}
	if cfg.Read == nil {
		cfg.Read = os.ReadFile
	}
	if cfg.Debounce <= 0 {
		cfg.Debounce = 100 * time.Millisecond
	}
	if cfg.Poll <= 0 {
		cfg.Poll = 2 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Watcher{cfg: cfg}, nil
}

// Check reads the file now, and calls OnChange before it returns if the outcome is
// new.
func (w *Watcher) Check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkLocked()
}

// Run checks the file once, because changes before the watch began have no event,
// and then whenever it changes, until ctx ends. The returned error is nil.
func (w *Watcher) Run(ctx context.Context) error {
	dir := watchDirectory(filepath.Dir(w.cfg.Path), w.cfg.Logger)
	defer dir.closeWatch()
	poll := time.NewTicker(w.cfg.Poll)
	defer poll.Stop()
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	d := eventDebouncer{quiet: w.cfg.Debounce}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-dir.events:
			quiet.Reset(d.nextDelay(time.Now()))
		case err := <-dir.errors: // usually an overflow, which loses events
			w.cfg.Logger.Warn("watch a directory", "path", dir.path, "error", err)
			quiet.Reset(d.nextDelay(time.Now()))
		case <-quiet.C:
			d.clearPending()
			w.Check()
		case <-poll.C:
			dir.restoreWatch()
			if !d.isPending() {
				w.checkIfTouched()
			}
		}
	}
}

// eventDebouncer delays an action until events have stopped for the quiet period, but
// no longer than maxQuietPeriods of them, because some files change all the time.
type eventDebouncer struct {
	quiet time.Duration
	first time.Time // of the events since the last reset; zero if there are none
}

const maxQuietPeriods = 10

// nextDelay records an event and returns the time to wait from now.
func (d *eventDebouncer) nextDelay(now time.Time) time.Duration {
	if d.first.IsZero() {
		d.first = now
	}
	return max(0, min(d.quiet, d.first.Add(maxQuietPeriods*d.quiet).Sub(now)))
}

func (d *eventDebouncer) clearPending() { d.first = time.Time{} }

func (d *eventDebouncer) isPending() bool { return !d.first.IsZero() }
