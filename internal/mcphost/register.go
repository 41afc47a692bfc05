package mcphost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Registration is what a caller declares about a server. It has a URL and never a
// command.
type Registration struct {
	Name      string            `json:"name" validate:"required,max=128"`
	Type      string            `json:"type,omitempty" validate:"omitempty,max=32"` // "" = remote
	URL       string            `json:"url" validate:"required,max=2048"`
	Headers   map[string]string `json:"headers,omitempty"`                                // stored encrypted, and never returned
	TimeoutMS int               `json:"timeout,omitzero" validate:"omitempty,max=600000"` // of an attempt to call a tool; 0 = the default
}

// Limits of registrations.
const (
	maxRegistered = 100
	maxHeaders    = 20
)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// transportOf returns the transport of a Registration.Type.
func transportOf(kind string) (transport string, ok bool) {
	switch kind {
	case "", "remote":
		return mcpfile.Auto, true
	case "http", "streamable-http":
		return mcpfile.HTTP, true
	case "sse":
		return mcpfile.SSE, true
	}
	return "", false
}

// Register stores a server, which is connected in the background by each process that uses
// the store, until it is removed, and returns its state. Errors are *contract.Error, or that
// of the context.
func (h *Host) Register(ctx context.Context, r Registration, caller *contract.Caller) (gateway.ServerInfo, error) {
	info, _, err := h.store(ctx, r, caller, false)
	return info, err
}

// Replace is Register, also if a server of the name is registered: then its registration is
// replaced, and each process connects again. created reports whether there was none.
func (h *Host) Replace(ctx context.Context, r Registration, caller *contract.Caller) (info gateway.ServerInfo, created bool, err error) {
	return h.store(ctx, r, caller, true)
}

func (h *Host) store(ctx context.Context, r Registration, caller *contract.Caller, replace bool) (info gateway.ServerInfo, created bool, err error) {
	if _, err := h.cfg.newServer(r); err != nil {
		return gateway.ServerInfo{}, false, err
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	created, err = h.storeRegistration(ctx, r, caller, replace)
	if err != nil {
		return gateway.ServerInfo{}, false, h.callerError(ctx, "the server cannot be registered", err)
	}
	h.cfg.Logger.InfoContext(ctx, "MCP server registered", "server", r.Name, "replaced", !created, "by", caller.Subject)
	info, _ = h.findServer(r.Name)
	return info, created, nil
}

// maxReplacements bounds how often a registration is written that other processes change at
// the same time.
const maxReplacements = 10

// storeRegistration stores a registration and uses it. Errors are *contract.Error, or of the
// store. The caller of the function holds writing.
func (h *Host) storeRegistration(ctx context.Context, r Registration, caller *contract.Caller, replace bool) (created bool, err error) {
	ctx, cancel := detach(ctx)
	defer cancel()
	if h.cfg.Shared { // another process may just have registered or removed it
		if err := h.syncRegistration(ctx, r.Name); err != nil {
			return false, err
		}
	}
	record := &registrationRecord{Registration: r, By: caller.Subject, At: time.Now().UTC()}
	for range maxReplacements {
		previous, err := h.checkAvailable(r.Name, replace)
		if err != nil {
			return false, err
		}
		var revision uint64
		if previous == 0 {
			revision, err = h.records.Create(ctx, recordKey(r.Name), record)
		} else {
			revision, err = h.records.Replace(ctx, recordKey(r.Name), previous, record)
		}
		if err == nil {
			h.putRegistration(store.Row[registrationRecord]{Key: recordKey(r.Name), Value: record, Revision: revision}, nil)
			return previous == 0, nil
		}
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
			return false, err
		}
		if err := h.syncRegistration(ctx, r.Name); err != nil { // another process was faster
			return false, err
		}
	}
	return false, &contract.Error{Code: contract.CodeConflict, Message: fmt.Sprintf("the registration of server %q is being changed by others: send the request again", r.Name)}
}

// checkAvailable returns an error if no server of the name can be registered, or the revision
// of the registration that is to be replaced, 0 if there is none.
func (h *Host) checkAvailable(name string, replace bool) (revision uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	registered := h.registrations[name]
	switch {
	case h.isDeclaredLocked(name) || registered != nil && !replace:
		return 0, errRegistered(name)
	case registered != nil:
		return registered.revision, nil
	case len(h.registrations) >= maxRegistered:
		return 0, &contract.Error{
			Code: contract.CodeConflict, Message: fmt.Sprintf("there are %d registered servers, the maximum: remove one of them", maxRegistered),
		}
	}
	return 0, nil
}

func errRegistered(name string) error {
	return &contract.Error{Code: contract.CodeConflict, Message: fmt.Sprintf("server %q is already declared", name)}
}

// storeTimeout bounds a change of a registration, which must not be interrupted when the
// caller disconnects: this process would not know whether it is stored.
const storeTimeout = 10 * time.Second

func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
}

// Remove removes a registered server, also one that is not used. Its calls in flight end
// before its connection does. Errors are *contract.Error.
func (h *Host) Remove(ctx context.Context, name string, caller *contract.Caller) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if err := h.removeRegistration(ctx, name); err != nil {
		return h.callerError(ctx, "the server cannot be removed", err)
	}
	h.cfg.Logger.InfoContext(ctx, "registered MCP server removed", "server", name, "by", caller.Subject)
	return nil
}

// callerError returns an error for callers. The context is that of the request.
func (h *Host) callerError(ctx context.Context, operation string, err error) error {
	if public, ok := errors.AsType[*contract.Error](err); ok {
		return public
	}
	return store.CallerError(ctx, h.cfg.Logger, operation, err)
}

// removeRegistration removes a stored registration. Errors are *contract.Error, or of the
// store. The caller of the function holds writing.
func (h *Host) removeRegistration(ctx context.Context, name string) error {
	ctx, cancel := detach(ctx)
	defer cancel()
	if validName.MatchString(name) { // another process may just have registered or removed it
		if err := h.syncRegistration(ctx, name); err != nil {
			return err
		}
	}
	h.mu.Lock()
	stored, declared := h.registrations[name] != nil, h.isDeclaredLocked(name)
	h.mu.Unlock()
	switch {
	case !stored && declared:
		return &contract.Error{Code: contract.CodeConflict, Message: "the server is declared in the registry file: remove it there"}
	case !stored:
		return h.Gateway.Remove(name)
	}
	if err := h.records.Delete(ctx, recordKey(name)); err != nil {
		return err
	}
	h.dropRegistration(name)
	return nil
}

// newServer checks a registration. No address is looked up or connected to.
func (c *Config) newServer(r Registration) (mcpfile.Server, error) {
	invalid := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the server is not valid"}
	if !validName.MatchString(r.Name) {
		invalid.Add("/name", "must be up to 128 letters, digits, dots, underscores and hyphens, and begin with a letter or a digit")
	}
	transport, ok := transportOf(r.Type)
	if !ok {
		invalid.Add("/type", fmt.Sprintf("%.32q is not supported; known are remote, http, streamable-http and sse. Commands are declared in the registry file only", r.Type))
	}
	if detail := c.checkURL(r); detail != "" {
		invalid.Add("/url", detail)
	}
	if len(r.Headers) > maxHeaders {
		invalid.Add("/headers", fmt.Sprintf("has %d headers, at most %d", len(r.Headers), maxHeaders))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if detail := mcpfile.CheckHeader(name, r.Headers[name]); detail != "" {
			invalid.Add(strictjson.AppendPointer("/headers", name), detail)
		}
	}
	if r.TimeoutMS < 0 {
		invalid.Add("/timeout", "must not be negative")
	}
	if len(invalid.Details) > 0 {
		return mcpfile.Server{}, invalid
	}
	server := mcpfile.Server{
		ID: r.Name, Transport: transport, URL: r.URL, Headers: maps.Clone(r.Headers),
		Timeouts: mcpfile.Timeouts{Call: r.TimeoutMS},
	}
	if err := gateway.CheckVariables(&server); err != nil {
		return mcpfile.Server{}, err
	}
	return server, nil
}

// checkURL returns why the URL may not be called, "" if it may, as far as this is known
// without a lookup of its name.
func (c *Config) checkURL(r Registration) string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "is not a URL"
	}
	if err := c.Guard.CheckURL(u); err != nil {
		return err.Error()
	}
	if u.Scheme == "http" && len(r.Headers) > 0 && !c.AllowPlainHTTP && !egress.IsLoopback(u.Hostname()) {
		return "is plain http on another host, where the headers could be read: use https"
	}
	return ""
}
