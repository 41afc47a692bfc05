package mcphost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// storedServer is a stored registration. Host.mu guards it.
type storedServer struct {
	revision uint64
	server   mcpfile.Server
	problem  string // why the registration cannot be used, for callers; "" = it can
	used     bool   // the gateway has the server

	overridden bool // by a server of the file
}

// openRegistrations reads the stored registrations.
func (h *Host) openRegistrations(ctx context.Context) error {
	type result struct {
		row store.Row[registrationRecord]
		err error
	}
	var results []result
	err := h.records.Scan(ctx, func(row store.Row[registrationRecord], err error) error {
		results = append(results, result{row, err})
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the registrations of MCP servers: %w", err)
	}
	for _, r := range results {
		if r.err == nil && r.row.Value.outdated {
			r.row.Revision = h.sealAgain(ctx, &r.row)
		}
		h.putRegistration(r.row, r.err)
	}
	return nil
}

// sealAgain encrypts a record with the first key of the ring, so that the older one can be
// removed after a rotation. It returns the revision of the record.
func (h *Host) sealAgain(ctx context.Context, row *store.Row[registrationRecord]) uint64 {
	updated, err := h.records.Update(ctx, row.Key, func(*registrationRecord) error { return nil })
	if err != nil && !errors.Is(err, store.ErrNotFound) { // another process has removed it
		h.cfg.Logger.WarnContext(ctx, "a registered MCP server stays encrypted with an older key", "key", row.Key, "error", err)
	}
	return cmp.Or(updated.Revision, row.Revision)
}

// putRegistration takes over a record, unless it is known. An error means that the record
// cannot be read: then the server is not used, and the others are.
func (h *Host) putRegistration(row store.Row[registrationRecord], err error) {
	name, ok := recordName(row.Key)
	if !ok {
		h.cfg.Logger.Error("ignoring a registration of an MCP server that cannot be read", "key", row.Key, "error", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.registrations[name]; s != nil && s.revision == row.Revision {
		return
	}
	s := &storedServer{revision: row.Revision, server: mcpfile.Server{ID: name, Transport: mcpfile.Auto}}
	if err != nil {
		s.problem = "its registration cannot be read, the log contains the reason: remove the server, and register it again"
	} else if server, rejected := h.cfg.newServer(row.Value.Registration); rejected != nil {
		s.problem, err = describeRejected(rejected), rejected
	} else {
		s.server = server
	}
	if err != nil {
		h.cfg.Logger.Error("a registered MCP server is not used", "server", name, "error", err)
	}
	h.withdrawLocked(name)
	h.registrations[name] = s
	h.useLocked(name)
}

func describeRejected(err error) string {
	return "its registration is not permitted any more: " + describe(err)
}

// describe returns an error with its details.
func describe(err error) string {
	invalid, ok := errors.AsType[*contract.Error](err)
	if !ok || len(invalid.Details) == 0 {
		return err.Error()
	}
	details := make([]string, len(invalid.Details))
	for i, d := range invalid.Details {
		details[i] = strings.TrimPrefix(d.Pointer, "/") + " " + d.Detail
	}
	return strings.Join(details, "; ")
}

// dropRegistration removes a server whose record was deleted.
func (h *Host) dropRegistration(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.withdrawLocked(name)
	delete(h.registrations, name)
}

// useLocked connects to a registered server, unless it cannot be used, or the file declares
// one of its name. The caller holds mu.
func (h *Host) useLocked(name string) {
	s := h.registrations[name]
	wasOverridden := s.overridden
	s.overridden = h.isDeclaredLocked(name)
	switch {
	case s.overridden && !wasOverridden:
		h.cfg.Logger.Warn("the registry file replaces a registered MCP server", "server", name)
	case !h.started || s.overridden || s.used || s.problem != "":
	default:
		if err := h.Gateway.Register(s.server); err != nil {
			s.problem = err.Error()
			h.cfg.Logger.Error("a registered MCP server is not used", "server", name, "error", err)
			return
		}
		s.used = true
	}
}

// withdrawLocked ends the connection to a registered server, if there is one. The caller
// holds mu.
func (h *Host) withdrawLocked(name string) {
	if s := h.registrations[name]; s != nil && s.used {
		_ = h.Gateway.Remove(name) // the only error is that it has been removed
		s.used = false
	}
}

// useAllLocked connects to all registered servers that can be used. The caller holds mu.
func (h *Host) useAllLocked() {
	for _, name := range slices.Sorted(maps.Keys(h.registrations)) {
		h.useLocked(name)
	}
}

// isDeclaredLocked reports whether the file in force declares a server of the name. The
// caller holds mu.
func (h *Host) isDeclaredLocked(name string) bool {
	return slices.ContainsFunc(h.file.Servers, func(s mcpfile.Server) bool { return s.ID == name })
}

// syncRegistration takes over the record of a server as it is stored. The caller holds
// writing.
func (h *Host) syncRegistration(ctx context.Context, name string) error {
	row, err := h.records.Get(ctx, recordKey(name))
	switch {
	case err == nil || row.Revision != 0: // with an error, the record cannot be read
		h.putRegistration(row, err)
	case errors.Is(err, store.ErrNotFound):
		h.dropRegistration(name)
	default:
		return err
	}
	return nil
}

const (
	// watchPause is the time before a watch that has failed begins again.
	watchPause = time.Second
	// reconcileInterval is how often all records are read. The store keeps the marker of a
	// deleted record for a minute, so that a process that was disconnected for longer does not
	// receive it.
	reconcileInterval = time.Minute
)

// FollowPeers takes over what other processes register and remove, until ctx ends. The
// bucket must have been opened with KeyTTL.
func (h *Host) FollowPeers(ctx context.Context) error {
	g := run.New(ctx)
	g.Go("watch the registrations of MCP servers", func(ctx context.Context) error {
		h.watchRegistrations(ctx)
		for range run.Ticks(ctx, watchPause) {
			h.watchRegistrations(ctx)
		}
		return nil
	})
	g.Go("compare the MCP servers with the store", func(ctx context.Context) error {
		for range run.Ticks(ctx, reconcileInterval) {
			if err := h.reconcile(ctx); err != nil && ctx.Err() == nil {
				h.cfg.Logger.WarnContext(ctx, "the MCP servers cannot be compared with the store", "error", err)
			}
		}
		return nil
	})
	return g.Wait()
}

// watchRegistrations takes over changes until ctx ends, or the watch fails. A change only
// names the record: this process may have stored or removed a later one.
func (h *Host) watchRegistrations(ctx context.Context) {
	err := h.records.Watch(ctx, func(row store.Row[registrationRecord], _ error) error {
		name, ok := recordName(row.Key)
		if !ok || h.isKnown(name, row.Revision) {
			return nil
		}
		return h.syncPeer(ctx, name)
	})
	if ctx.Err() == nil {
		h.cfg.Logger.ErrorContext(ctx, "cannot follow the registrations of MCP servers", "error", err)
	}
}

// syncPeer takes over the record of a server that another process may have changed. Its time
// is bounded, because callers wait for it.
func (h *Host) syncPeer(ctx context.Context, name string) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return h.syncRegistration(ctx, name)
}

func (h *Host) isKnown(name string, revision uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.registrations[name]
	return s != nil && s.revision == revision
}

// reconcile removes the servers whose records other processes have deleted. Records that
// they have written come by the watch, however long this process was disconnected.
func (h *Host) reconcile(ctx context.Context) error {
	h.mu.Lock()
	missing := maps.Clone(h.registrations)
	h.mu.Unlock()
	stored, err := h.records.Keys(ctx)
	if err != nil {
		return err
	}
	for _, key := range stored {
		name, _ := recordName(key)
		delete(missing, name)
	}
	for name := range missing { // a record of the same name may have been written meanwhile
		if err := h.syncPeer(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Servers returns the state of all servers, ordered by name, also of registered ones that
// cannot be used.
func (h *Host) Servers() []gateway.ServerInfo {
	servers := h.Gateway.Servers()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range servers {
		s := &servers[i]
		s.OverridesRegistration = s.Origin == gateway.OriginFile && h.registrations[s.Name] != nil
	}
	n := len(servers)
	for name, s := range h.registrations {
		if s.problem != "" && !s.overridden {
			servers = append(servers, gateway.ServerInfo{
				Name: name, Transport: s.server.Transport, Config: s.server.Public(), Origin: gateway.OriginRegistration,
				Status: gateway.StatusError, State: gateway.StateBlocked, Error: s.problem, Tools: []gateway.Tool{},
			})
		}
	}
	if len(servers) > n {
		slices.SortFunc(servers, func(a, b gateway.ServerInfo) int { return cmp.Compare(a.Name, b.Name) })
	}
	return servers
}

// findServer returns the state of the server with the name.
func (h *Host) findServer(name string) (gateway.ServerInfo, bool) {
	servers := h.Servers()
	i := slices.IndexFunc(servers, func(s gateway.ServerInfo) bool { return s.Name == name })
	if i < 0 {
		return gateway.ServerInfo{}, false
	}
	return servers[i], true
}

// WaitServer returns the state of the server when it is connected or has failed, or when the
// context ends. It starts a server that is started lazily.
func (h *Host) WaitServer(ctx context.Context, name string) (gateway.ServerInfo, bool) {
	h.Gateway.WaitServer(ctx, name)
	return h.findServer(name)
}
