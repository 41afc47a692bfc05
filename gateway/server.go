package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/pins"
	"github.com/caprouter/caprouter/gateway/redaction"
	"github.com/caprouter/caprouter/internal/broadcast"
	"github.com/caprouter/caprouter/internal/resilience"
)

// Statuses of a server.
const (
	StatusDisconnected = "disconnected"
	StatusConnecting   = "connecting"
	StatusConnected    = "connected"
	StatusError        = "error"
)

// States of a server, beside its status.
const (
	StateDegraded     = "degraded"      // connected, but calls or probes have failed
	StateBlocked      = "blocked"       // a variable of its declaration has no value
	StateAuthRequired = "auth_required" // it rejects the credential
	StateDisabled     = "disabled"      // by its declaration
)

// server is one server with its connection.
type server struct {
	declared mcpfile.Server
	origin   string
	cfg      *Config
	client   mcpclient.Config
	log      *slog.Logger
	events   *eventHub
	onStatus func() // called after a change of the status
	policy   *callPolicy
	calls    callsInFlight
	firstUse pins.Budget

	attempted *latch // set after the first attempt to connect, or at once if that is lazy
	demanded  *latch // set when a lazy server is needed

	mu sync.Mutex
	connection
	tools    map[string]*tool // by name; immutable; kept while the connection is lost
	contents                  // as the tools
	listed   uint64           // changes that the server had reported before it listed the tools
	changes  broadcast.Signal // of these values
}

// connection is the state of a server's connection.
type connection struct {
	status       string
	state        string
	err          error
	link         link // nil if not connected
	available    bool // stays as it was while a connection is established
	failedProbes int
}

// newServer returns a server that is not connected. The error is a *contract.Error.
func (g *Gateway) newServer(declared mcpfile.Server, origin string) (*server, error) {
	policy, err := newCallPolicy(&declared, &g.cfg)
	if err != nil {
		return nil, &contract.Error{Code: contract.CodeInvalidRequest, Message: fmt.Sprintf("server %q: %v", declared.ID, err)}
	}
	client := g.cfg.Client
	if origin == OriginRegistration {
		client.Addresses = g.cfg.Guard
	}
	return &server{
		declared: declared, origin: origin, cfg: &g.cfg, client: client, log: g.cfg.Client.Logger.With("server", declared.ID),
		events: g.events, onStatus: g.bindings.update, policy: policy,
		attempted: newLatch(), demanded: newLatch(),
		connection: connection{status: StatusDisconnected, available: !declared.Disabled},
	}, nil
}

// setStatus sets the state of the connection, and reports a change of the status.
func (s *server) setStatus(status, state string, err error, l link) {
	s.mu.Lock()
	next := connection{status: status, state: state, err: err, link: l, available: l != nil}
	if status == StatusConnecting || errors.Is(err, errClosed) { // bindings do not change with the end of the process
		next.available = s.available
	}
	isNew := s.swapConnectionLocked(next)
	s.mu.Unlock()
	if isNew {
		s.emitStatus(next)
	}
	if status != StatusConnecting {
		s.attempted.set()
	}
}

// reportStatus sets the status that is shown.
func (s *server) reportStatus(status, failure string) {
	s.mu.Lock()
	next := s.connection
	next.status, next.err = status, nil
	if failure != "" {
		next.err = errors.New(failure)
	}
	isNew := s.swapConnectionLocked(next)
	s.mu.Unlock()
	if isNew {
		s.emitStatus(next)
	}
}

// swapConnectionLocked sets the connection, and reports whether its status is another one.
// The caller holds mu.
func (s *server) swapConnectionLocked(next connection) (isNew bool) {
	isNew = next.status != s.status || next.state != s.state
	s.connection = next
	s.changes.Broadcast()
	return isNew
}

// emitStatus emits the event of a new status. The caller does not hold mu.
func (s *server) emitStatus(next connection) {
	e := contract.GatewayEvent{Type: contract.ServerStatusEvent, Server: s.declared.ID, Status: next.status, State: next.state}
	if next.err != nil {
		e.Error = next.err.Error()
	}
	s.events.emit(e)
	s.onStatus()
}

func (s *server) info() ServerInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := ServerInfo{
		Name: s.declared.ID, Transport: s.declared.Transport, Config: s.declared.Public(), Origin: s.origin, Prefix: s.declared.Tools.Prefix,
		Status: s.status, State: s.stateLocked(), ToolCount: len(s.tools), Tools: []Tool{}, Capabilities: s.declared.Capabilities,
		Prompts: s.prompts.entries, Resources: s.resources.entries, ResourceTemplates: s.templates.entries,
		ReadsResources: s.offers.Resources, Completes: s.offers.Completions,
	}
	if s.err != nil {
		info.Error = s.err.Error()
	}
	if session, ok := s.link.(*sessionLink); ok {
		info.Protocol = session.Protocol()
	}
	for _, t := range s.tools {
		shown := t.Tool
		shown.Repeatable = t.isRepeatable()
		if s.policy.rules.Has(redaction.Response) {
			shown.OutputSchema = nil // a redacted result may not match it, and clients reject such a result
		}
		info.Tools = append(info.Tools, shown)
	}
	slices.SortFunc(info.Tools, func(a, b Tool) int { return cmp.Compare(a.Action, b.Action) })
	return info
}

// stateLocked returns the state that is shown. The caller holds mu.
func (s *server) stateLocked() string {
	if s.status == StatusConnected && s.state == "" && (s.failedProbes > 0 || s.policy.breaker.State() != resilience.Closed) {
		return StateDegraded
	}
	return s.state
}

// availability reports whether calls of the server can be expected to succeed, without
// copying its tools. If they cannot, reason is why; degraded is true if the state is degraded.
func (s *server) availability() (available, degraded bool, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason = s.status
	if s.err != nil {
		reason = cmp.Or(s.err.Error(), s.status)
	}
	return s.available, s.stateLocked() == StateDegraded, reason
}

// waitLink returns the connection. While it is being established, waitLink waits.
func (s *server) waitLink(ctx context.Context) (link, error) {
	s.demandStart()
	for {
		s.mu.Lock()
		status, err, l, changed := s.status, s.err, s.link, s.changes.Next()
		s.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case status != StatusConnecting && err != nil:
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errConnecting
		}
	}
}

// demandStart connects a server that starts lazily.
func (s *server) demandStart() { s.demanded.set() }

func milliseconds(ms int, fallback time.Duration) time.Duration {
	if ms == 0 {
		return fallback
	}
	return time.Duration(ms) * time.Millisecond
}
