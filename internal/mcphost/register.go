package mcphost

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/egress"
)

// Registration is what a caller declares about a server. It has a URL and never a
// command.
type Registration struct {
	Name      string            `json:"name" validate:"required,max=128"`
	Type      string            `json:"type,omitempty" validate:"omitempty,max=32"` // "" = remote
	URL       string            `json:"url" validate:"required,max=2048"`
	Headers   map[string]string `json:"headers,omitempty"`                                // stored in memory, and never returned
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

// Register adds a server, which is connected in the background and stays until it is
// removed or the process ends, and returns its state. Errors are *contract.Error.
func (h *Host) Register(r Registration) (gateway.ServerInfo, error) {
	server, err := h.newServer(r)
	if err != nil {
		return gateway.ServerInfo{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	registered := 0
	for _, s := range h.Servers() {
		if s.Origin == gateway.OriginRegistration {
			registered++
		}
	}
	if registered >= maxRegistered {
		return gateway.ServerInfo{}, &contract.Error{
			Code: contract.CodeConflict, Message: fmt.Sprintf("there are %d registered servers, the maximum: remove one of them", maxRegistered),
		}
	}
	if err := h.Gateway.Register(server); err != nil {
		return gateway.ServerInfo{}, err
	}
	info, _ := h.Get(r.Name)
	return info, nil
}

// Remove removes a registered server. Its calls in flight end before its connection does.
// Errors are *contract.Error.
func (h *Host) Remove(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if info, ok := h.Get(name); ok && info.Origin != gateway.OriginRegistration {
		return &contract.Error{Code: contract.CodeConflict, Message: "the server is declared in the registry file: remove it there"}
	}
	return h.Gateway.Remove(name)
}

// newServer checks a registration. No address is looked up or connected to.
func (h *Host) newServer(r Registration) (mcpfile.Server, error) {
	invalid := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the server is not valid"}
	if !validName.MatchString(r.Name) {
		invalid.Add("/name", "must be up to 128 letters, digits, dots, underscores and hyphens, and begin with a letter or a digit")
	}
	transport, ok := transportOf(r.Type)
	if !ok {
		invalid.Add("/type", fmt.Sprintf("%.32q is not supported; known are remote, http, streamable-http and sse. Commands are declared in the registry file only", r.Type))
	}
	if detail := h.checkURL(r); detail != "" {
		invalid.Add("/url", detail)
	}
	if len(r.Headers) > maxHeaders {
		invalid.Add("/headers", fmt.Sprintf("has %d headers, at most %d", len(r.Headers), maxHeaders))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if detail := mcpfile.CheckHeader(name, r.Headers[name]); detail != "" {
			invalid.Add("/headers", detail)
		}
	}
	if r.TimeoutMS < 0 {
		invalid.Add("/timeout", "must not be negative")
	}
	if len(invalid.Details) > 0 {
		return mcpfile.Server{}, invalid
	}
	return mcpfile.Server{
		ID: r.Name, Transport: transport, URL: r.URL, Headers: maps.Clone(r.Headers),
		Timeouts: mcpfile.Timeouts{Call: r.TimeoutMS},
	}, nil
}

// checkURL returns why the URL may not be called, "" if it may, as far as this is known
// without a lookup of its name.
func (h *Host) checkURL(r Registration) string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "is not a URL"
	}
	if err := h.cfg.Guard.CheckURL(u); err != nil {
		return err.Error()
	}
	if u.Scheme == "http" && len(r.Headers) > 0 && !h.cfg.AllowPlainHTTP && !egress.IsLoopback(u.Hostname()) {
		return "is plain http on another host, where the headers could be read: use https"
	}
	return ""
}
