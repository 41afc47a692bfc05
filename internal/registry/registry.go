// Package registry merges the sources of the capability registry into the version
// that is in force.
//
//	capabilities.yaml ─▶ File ──┐
//	                            ├─▶ Registry ─▶ *capabilities.Snapshot ─▶ Config.Apply
//	registrations ─▶ Fleet ─────┘
//
// Sources are in order of precedence. The rules (routing, fallback, grants) are
// those of the first source, and if two sources declare an agent with the same id,
// the first declaration wins. So what an operator writes into the file cannot be
// replaced by an agent that registers itself.
//
// A source with an error keeps its last valid content in force. The error is in
// [Status] until the source is valid again.
package registry

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
)

// Source provides a part of the registry. Implementations are safe for concurrent
// use.
type Source interface {
	// State returns the last valid content, which must not be changed, and why
	// newer content cannot be used, if there is any.
	State() (*capabilities.Definition, error)

	// Notify sets the function to call after each change of State. It is called
	// once, before Run.
	Notify(changed func())

	// Run looks for changes until ctx ends.
	Run(ctx context.Context) error
}

// Config contains the optional parameters of a Registry; its zero value works.
type Config struct {
	// Apply receives each new version. Calls do not overlap, and must not call
	// methods of the Registry; the same holds for Report.
	Apply func(*capabilities.Snapshot)
	// Report receives the version in force and the errors of the sources, nil if
	// all are valid, after each change of either.
	Report func(*capabilities.Snapshot, error)
	Logger *slog.Logger     // nil = silent
	Now    func() time.Time // nil = time.Now
}

// Registry owns the version in force. It is safe for concurrent use.
type Registry struct {
	cfg     Config
	sources []Source

	mu      sync.Mutex
	builder capabilities.Builder
	current *capabilities.Snapshot
	status  Status
}

// Status describes the version in force.
type Status struct {
	Version  string    // of the catalogue
	LoadedAt time.Time // when the version came into force
	Err      error     // why newer content of a source is not used; nil if all is in force
}

// New merges the sources, of which there is at least one, and returns an error if
// one of them has no valid content. Config.Apply receives the first version.
func New(cfg Config, sources ...Source) (*Registry, error) {
	if cfg.Apply == nil {
		cfg.Apply = func(*capabilities.Snapshot) {}
	}
	if cfg.Report == nil {
		cfg.Report = func(*capabilities.Snapshot, error) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Registry{cfg: cfg, sources: sources}
	s, err := r.mergeSources()
	if err != nil {
		return nil, err
	}
	r.current, r.status = s, Status{Version: s.Catalogue.Version, LoadedAt: cfg.Now()}
	cfg.Apply(s)
	cfg.Report(s, nil)
	for _, source := range sources {
		source.Notify(r.refreshSnapshot)
	}
	return r, nil
}

// Current returns the version in force.
func (r *Registry) Current() *capabilities.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// Status returns the state of the version in force.
func (r *Registry) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Run watches all sources until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	g := run.New(ctx)
	for _, source := range r.sources {
		g.Go("source of the registry", source.Run)
	}
	return g.Wait()
}

// refreshSnapshot merges the sources again after one of them has changed.
func (r *Registry) refreshSnapshot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.mergeSources()
	previous := r.status.Err
	r.status.Err = err
	changed := s != nil && (s.Catalogue.Version != r.current.Catalogue.Version || s.Fleet.Revision != r.current.Fleet.Revision)
	if changed {
		r.current, r.status.Version, r.status.LoadedAt = s, s.Catalogue.Version, r.cfg.Now()
		r.cfg.Apply(s)
		r.cfg.Logger.Info("registry reloaded", "version", s.Catalogue.Version, "fleet", s.Fleet.Revision, "agents", len(s.Catalogue.Agents))
	}
	newError := err != nil && (previous == nil || previous.Error() != err.Error())
	switch {
	case newError:
		r.cfg.Logger.Error("registry not reloaded; the last good one stays", "version", r.status.Version, "error", err)
	case err == nil && previous != nil && !changed:
		r.cfg.Logger.Info("registry file is good again, as it was", "version", r.status.Version)
	}
	if newError || changed || err == nil && previous != nil {
		r.cfg.Report(r.current, err)
	}
}

// mergeSources combines the valid contents of the sources. The snapshot is nil if that is
// impossible; the error also contains the errors of sources whose last valid
// content is used.
func (r *Registry) mergeSources() (*capabilities.Snapshot, error) {
	var (
		merged  *capabilities.Definition
		agents  []*contract.RegistryEntry
		errs    []error
		claimed = map[string]bool{}

		disabled = map[string]bool{}
	)
	for _, source := range r.sources {
		d, err := source.State()
		errs = append(errs, err)
		if d == nil {
			continue
		}
		if merged == nil {
			rules := *d
			merged = &rules
		}
		for _, a := range d.Agents {
			if !claimed[a.ID] {
				agents = append(agents, a)
			}
		}
		for _, a := range d.Agents {
			claimed[a.ID] = true
		}
		maps.Copy(disabled, d.Disabled)
	}
	if merged == nil {
		return nil, errors.Join(errs...)
	}
	merged.Agents, merged.Disabled = agents, disabled
	s, err := r.builder.Build(merged)
	return s, errors.Join(append(errs, err)...)
}
