package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/filekind"
	"github.com/caprouter/caprouter/internal/filewatch"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// FileConfig specifies a registry file. Only Path is required.
type FileConfig struct {
	Path string
	// Optional means that the file may be created later. Until it exists for the
	// first time, the registry is empty; a file that is removed is an error.
	Optional       bool
	Debounce, Poll time.Duration // see filewatch.Config
	Logger         *slog.Logger  // nil = silent
}

// File is the Source that an operator edits.
type File struct {
	cfg     FileConfig
	watcher *filewatch.Watcher

	mu         sync.Mutex
	definition *capabilities.Definition
	err        error
	existed    bool
	changed    func()
}

// emptyRegistry is the content of an optional file that has never existed.
const emptyRegistry = "clients: {}\n"

// OpenFile reads the file. A file with mistakes is strictyaml.Errors; an
// unreadable one is the error of the operating system.
func OpenFile(cfg FileConfig) (*File, error) {
	f := &File{cfg: cfg, changed: func() {}}
	var err error
	f.watcher, err = filewatch.New(filewatch.Config{
		Path: cfg.Path, Read: strictyaml.ReadFile, OnChange: f.updateContent, Debounce: cfg.Debounce, Poll: cfg.Poll, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	err = f.Reload()
	return f, err
}

// Reload reads the file now, and returns why its content cannot be used, nil if it
// is in force.
func (f *File) Reload() error {
	f.watcher.Check()
	_, err := f.State()
	return err
}

// State implements Source.
func (f *File) State() (*capabilities.Definition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.definition, f.err
}

// Notify implements Source.
func (f *File) Notify(changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = changed
}

// Run implements Source.
func (f *File) Run(ctx context.Context) error { return f.watcher.Run(ctx) }

// updateContent takes over new content of the file.
func (f *File) updateContent(content []byte, err error) {
	d, err := f.parseContent(content, err)
	f.mu.Lock()
	f.err = err
	if err == nil {
		f.definition = d
	}
	changed := f.changed
	f.mu.Unlock()
	changed() // without the lock, because it calls State
}

func (f *File) parseContent(content []byte, err error) (*capabilities.Definition, error) {
	switch {
	case err == nil:
		f.existed = true
	case f.cfg.Optional && !f.existed && errors.Is(err, fs.ErrNotExist):
		content = []byte(emptyRegistry)
	default:
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	d, err := capabilities.ParseDefinition(f.cfg.Path, content)
	return d, filekind.Explain(err, filekind.Registry, f.cfg.Path, content)
}
