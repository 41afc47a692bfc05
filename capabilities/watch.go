package capabilities

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"
)

// WatchConfig says which file is watched and how. Only Path is required.
type WatchConfig struct {
	Path string
	// Optional lets the file come later: until it is there for the first time,
	// the registry is empty.
	Optional bool
	Debounce time.Duration // quiet needed after a change before the file is read; 0 = 100 ms
	Poll     time.Duration // how often the file is looked at unasked; 0 = 2 s
	Logger   *slog.Logger  // nil = no log
	// Report is told when a look at the file changed the Status: nil when what it
	// holds has come into force or is good again, else what is newly wrong.
	Report func(error)
	Now    func() time.Time
}

// Watcher keeps a registry file and what is served of it in step. It hands every
// good version of the file to apply, once; a bad one it reports and leaves
// alone. Its methods may be called from any goroutine.
type Watcher struct {
	cfg    WatchConfig
	loader *loader
	turn   chan struct{} // holds a token while nobody loads
	status atomic.Pointer[Status]
}

// Status is what a Watcher serves and how the last look at the file went.
type Status struct {
	Version  string    // of the snapshot in force
	LoadedAt time.Time // when it was applied
	// Stale says that the file holds something else, which could not be used;
	// Err says why.
	Stale bool
	Err   error
	// Reloads counts the snapshots applied after the first, Failures what went
	// wrong in between; a failure that lasts counts once.
	Reloads, Failures int
}

// NewWatcher loads the file and applies it; without a good first version there
// is no watcher. apply gets one snapshot at a time and makes it the one in
// force, or changes nothing and returns an error.
func NewWatcher(cfg WatchConfig, apply func(*Snapshot) error) (*Watcher, error) {
	if cfg.Debounce <= 0 {
		cfg.Debounce = 100 * time.Millisecond
	}
	if cfg.Poll <= 0 {
		cfg.Poll = 2 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &Watcher{cfg: cfg, loader: &loader{path: cfg.Path, optional: cfg.Optional, apply: apply}, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	first, err := w.loader.load()
	if err != nil {
		return nil, err
	}
	w.status.Store(&Status{Version: first.Catalogue.Version, LoadedAt: cfg.Now()})
	return w, nil
}

// Status returns the state of things without waiting.
func (w *Watcher) Status() Status { return *w.status.Load() }

// Reload looks at the file now and returns what is wrong with it, nil when what
// it holds is in force. It waits for a load under way.
func (w *Watcher) Reload(ctx context.Context) error { return w.look(ctx, w.loader.load) }

// look has its turn at the file and notes the outcome.
func (w *Watcher) look(ctx context.Context, load func() (*Snapshot, error)) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.turn:
	}
	defer func() { w.turn <- struct{}{} }()
	s, err := load()
	w.note(s, err)
	return err
}

// note records the outcome of a load, and logs it when it is news.
func (w *Watcher) note(s *Snapshot, err error) {
	old := w.Status()
	next := old
	next.Err, next.Stale = err, err != nil
	log := w.cfg.Logger.With("path", w.cfg.Path)
	switch {
	case err != nil && (old.Err == nil || old.Err.Error() != err.Error()):
		next.Failures++
		w.publish(next)
		log.Error("registry not reloaded; the last good one stays", "version", old.Version, "error", err)
	case err != nil: // it lasts
	case s != nil:
		next.Version, next.LoadedAt = s.Catalogue.Version, w.cfg.Now()
		next.Reloads++
		w.publish(next)
		log.Info("registry reloaded", "version", s.Catalogue.Version, "agents", len(s.Catalogue.Agents))
	case old.Err != nil:
		w.publish(next)
		log.Info("registry file is good again, as it was", "version", old.Version)
	}
}

// publish makes next the status, and says so.
func (w *Watcher) publish(next Status) {
	w.status.Store(&next)
	w.cfg.Report(next.Err)
}

// Run watches the file until ctx ends, which is not an error.
//
// It watches the directory, not the file: an editor replaces the file by
// another, and Kubernetes swaps a symbolic link further up ("..data"); a watch
// on the file would go on watching the old one. Any event there is a reason to
// look, and looking is cheap. The poll catches what no event tells: a link into
// another directory, a network file system, a directory made anew.
func (w *Watcher) Run(ctx context.Context) error {
	dir := watchDirectory(filepath.Dir(w.cfg.Path), w.cfg.Logger)
	defer dir.close()
	poll := time.NewTicker(w.cfg.Poll)
	defer poll.Stop()

	// Of what happened before the watch began there is no event.
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	s := settling{quiet: w.cfg.Debounce}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-dir.events:
			quiet.Reset(s.event(time.Now()))
		case err := <-dir.errors: // an overflow, mostly: events are lost
			w.cfg.Logger.Warn("watching the registry's directory", "path", dir.path, "error", err)
			quiet.Reset(s.event(time.Now()))
		case <-quiet.C:
			s.settled()
			_ = w.look(ctx, w.loader.load) // what is wrong is in the status
		case <-poll.C:
			dir.renew()
			if !s.waiting() {
				_ = w.look(ctx, w.loader.glance)
			}
		}
	}
}

// settling delays a look until changes have stopped for a while, because files
// are written in several steps; but not for ever, because some never stop.
type settling struct {
	quiet time.Duration
	first time.Time // of the changes not looked at yet; zero when there are none
}

// patience is how many quiet times a look is put off at most.
const patience = 10

// event notes a change and returns how long to wait from now.
func (s *settling) event(now time.Time) time.Duration {
	if s.first.IsZero() {
		s.first = now
	}
	return max(0, min(s.quiet, s.first.Add(patience*s.quiet).Sub(now)))
}

func (s *settling) settled() { s.first = time.Time{} }

func (s *settling) waiting() bool { return !s.first.IsZero() }
