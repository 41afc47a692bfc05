package mcphost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/filekind"
	"github.com/caprouter/caprouter/internal/filewatch"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Config of a Host. All fields but Optional, Shared and AllowPlainHTTP are required.
type Config struct {
	Path string
	// Optional means that the file may be created later. Until it exists for the first
	// time there are no servers; a file that is removed is an error.
	Optional bool
	Gateway  gateway.Config // its Recorder and its Guard are set by New
	Guard    *egress.Guard  // of the addresses of registered servers
	// Bucket and Keys store the registrations of servers, encrypted. Shared means that other
	// processes use the bucket, which must be opened with KeyTTL then.
	Bucket *store.Bucket
	Keys   *contentkey.Keyring
	Shared bool
	// AllowPlainHTTP permits registered servers to get their headers over http.
	AllowPlainHTTP bool

	// IsAgent reports whether a caller is an agent of the registry, with its id as the
	// subject. Gateway.Capabilities limit which tools it may call.
	IsAgent func(caller *contract.Caller) bool

	Journal  Journal
	Redactor *redact.Redactor
	Meter    Meter
	Logger   *slog.Logger
}

// Host connects to MCP servers and calls their tools. Its methods may be called from any
// goroutine.
type Host struct {
	*gateway.Gateway

	cfg     Config
	watcher *filewatch.Watcher
	records *store.Table[registrationRecord]

	writing sync.Mutex // of the store and the registrations together; before mu

	mu            sync.Mutex
	started       bool
	existed       bool          // the file, at some time
	file          *mcpfile.File // the last valid one
	err           error         // why the present content of the file is not in force
	registrations map[string]*storedServer
}

// New loads the file and the stored registrations. A file with mistakes is strictyaml.Errors.
// No server is started before Start. Close must be called; the end of the context does not end
// the servers.
func New(ctx context.Context, cfg Config) (*Host, error) {
	cfg.Gateway.Client.Logger, cfg.Gateway.Guard = cfg.Logger, cfg.Guard
	cfg.Gateway.Recorder = &callRecorder{journal: cfg.Journal, meter: cfg.Meter, redactor: cfg.Redactor, log: cfg.Logger}
	h := &Host{
		cfg: cfg, file: &mcpfile.File{Name: cfg.Path},
		records: newRecords(cfg.Bucket, cfg.Keys), registrations: map[string]*storedServer{},
	}
	var err error
	h.watcher, err = filewatch.New(filewatch.Config{Path: cfg.Path, Read: strictyaml.ReadFile, OnChange: h.updateContent, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	if err := h.ReloadFile(); err != nil {
		return nil, err
	}
	if err := h.openRegistrations(ctx); err != nil {
		return nil, err
	}
	h.Gateway, err = gateway.Start(context.WithoutCancel(ctx), nil, cfg.Gateway)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Start connects to the servers in the background.
func (h *Host) Start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started = true
	h.err = h.applyLocked()
	h.useAllLocked()
	if n := len(h.registrations); n > 0 {
		used := 0
		for _, s := range h.registrations {
			if s.used {
				used++
			}
		}
		h.cfg.Logger.Info("registered MCP servers", "stored", n, "used", used)
	}
}

// Watch reloads the file whenever it changes, until the context ends.
func (h *Host) Watch(ctx context.Context) error { return h.watcher.Run(ctx) }

// ReloadFile reads the file now, and returns why its content is not in force, nil if it is.
func (h *Host) ReloadFile() error {
	h.watcher.Check()
	return h.Status().Err
}

// Status describes the registry file.
type Status struct {
	Path    string
	Servers int // of the last valid file
	Err     error
}

// Status returns the state of the registry file.
func (h *Host) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Status{Path: h.cfg.Path, Servers: len(h.file.Servers), Err: h.err}
}

// updateContent takes over new content of the file.
func (h *Host) updateContent(content []byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	previous := h.file
	file, err := h.parseLocked(content, err)
	if err == nil {
		for _, w := range file.Warnings {
			h.cfg.Logger.Warn("registry of MCP servers", "warning", w)
		}
		h.file = file
		if h.started {
			if err = h.applyLocked(); err != nil {
				h.file = previous
			}
			h.useAllLocked()
		}
	}
	h.err = err
	h.cfg.Meter.RecordMCPRegistryLoad(err == nil)
	if err != nil && h.started { // before, the caller of New reports the error
		h.cfg.Logger.Error("the registry file of MCP servers cannot be loaded, the last valid one stays in use", "error", err)
	}
}

func (h *Host) parseLocked(content []byte, err error) (*mcpfile.File, error) {
	switch {
	case err == nil:
		h.existed = true
		f, err := mcpfile.Parse(h.cfg.Path, content)
		return f, filekind.Explain(err, filekind.Servers, h.cfg.Path, content)
	case errors.Is(err, fs.ErrNotExist) && h.cfg.Optional && !h.existed:
		return &mcpfile.File{Name: h.cfg.Path}, nil
	}
	return nil, fmt.Errorf("read the registry of MCP servers: %w", err)
}

// applyLocked makes the servers of the file those in force. They replace registered ones
// of the same names, which useAllLocked connects again if the file is rejected.
func (h *Host) applyLocked() error {
	for i := range h.file.Servers {
		h.withdrawLocked(h.file.Servers[i].ID)
	}
	changes, err := h.Reload(h.file)
	if err != nil {
		return err
	}
	if len(changes.Added)+len(changes.Changed)+len(changes.Removed) > 0 {
		h.cfg.Logger.Info("MCP servers", "added", strings.Join(changes.Added, ", "), "changed", strings.Join(changes.Changed, ", "),
			"removed", strings.Join(changes.Removed, ", "), "unchanged", len(changes.Unchanged))
	}
	return nil
}

// CountByStatus returns the number of servers by status.
func (h *Host) CountByStatus() map[string]int {
	count := map[string]int{}
	for _, s := range h.Servers() {
		count[s.Status]++
	}
	return count
}
