package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/resilience"
)

// Statuses of a server.
const (
	StatusDisconnected = "disconnected"
	StatusConnecting   = "connecting"
	StatusConnected    = "connected"
	StatusError        = "error"
)

// States of a server that is not connected on purpose.
const (
	StateBlocked  = "blocked"  // a variable of its declaration has no value
	StateDisabled = "disabled" // by its declaration
)

// server is one server with its connection.
type server struct {
	declared mcpfile.Server
	cfg      *Config
	log      *slog.Logger
	breaker  *resilience.Breaker
	tried    chan struct{} // closed after the first attempt to connect
	firstTry sync.Once

	mu      sync.Mutex
	status  string
	state   string
	err     error
	link    link             // nil if not connected
	tools   map[string]*tool // by name; kept while the connection is lost
	changed chan struct{}    // closed when the status changes
}

// link is what a connected server is called through.
type link interface {
	// call calls the tool once. Errors are *mcpclient.CallError or of the context.
	call(ctx context.Context, t *tool, c *toolCall) (*reply, error)
}

func newServer(declared mcpfile.Server, cfg *Config) *server {
	return &server{
		declared: declared, cfg: cfg, log: cfg.Client.Logger.With("server", declared.ID),
		breaker: resilience.NewBreaker(cfg.Breaker), status: StatusDisconnected,
		tried: make(chan struct{}), changed: make(chan struct{}),
	}
}

func (s *server) setStatus(status, state string, err error, l link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.state, s.err, s.link = status, state, err, l
	close(s.changed)
	s.changed = make(chan struct{})
	if status == StatusConnecting {
		return
	}
	s.firstTry.Do(func() { close(s.tried) })
}

func (s *server) setTools(tools map[string]*tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

func (s *server) info() ServerInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := ServerInfo{
		Name: s.declared.ID, Transport: s.declared.Transport, Status: s.status, State: s.state,
		ToolCount: len(s.tools), Tools: []Tool{}, Capabilities: s.declared.Capabilities,
	}
	if s.err != nil {
		info.Error = s.err.Error()
	}
	if session, ok := s.link.(*sessionLink); ok {
		info.Protocol = session.Protocol()
	}
	for _, t := range s.tools {
		info.Tools = append(info.Tools, t.Tool)
	}
	slices.SortFunc(info.Tools, func(a, b Tool) int { return cmp.Compare(a.Action, b.Action) })
	return info
}

// findTool returns the tool, or nil.
func (s *server) findTool(name string) *tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[name]
}

// waitLink returns the connection. While it is being established, waitLink waits.
func (s *server) waitLink(ctx context.Context) (link, error) {
	for {
		s.mu.Lock()
		status, err, l, changed := s.status, s.err, s.link, s.changed
		s.mu.Unlock()
		switch status {
		case StatusConnected:
			return l, nil
		case StatusError, StatusDisconnected:
			if err != nil {
				return nil, err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errNotTried
		}
	}
}

// stableAfter is how long a connection must last so that the backoff begins again.
const stableAfter = time.Minute

// maintain keeps the server connected until the context ends.
func (s *server) maintain(ctx context.Context) {
	if s.declared.Disabled {
		s.setStatus(StatusDisconnected, StateDisabled, errors.New("the server is disabled by its declaration"), nil)
		return
	}
	expanded, err := s.declared.Expand(s.cfg.Lookup)
	if err != nil {
		s.setStatus(StatusError, StateBlocked, err, nil)
		return
	}
	for failures := 0; ctx.Err() == nil; {
		s.setStatus(StatusConnecting, "", nil, nil)
		start := time.Now()
		connected, err := s.connect(ctx, expanded)
		if ctx.Err() != nil {
			break
		}
		if time.Since(start) >= stableAfter+s.cfg.ConnectTimeout {
			failures = 0
		}
		failures++
		if connected && failures == 1 {
			s.setStatus(StatusConnecting, "", err, nil) // calls wait for the next attempt
		} else {
			s.setStatus(StatusError, "", err, nil)
		}
		delay := backoff(s.cfg.MinBackoff, failures, rand.Float64()) //nolint:gosec // jitter need not be secret
		s.log.Warn("MCP server is not connected", "error", err, "retry_in", delay.Round(time.Millisecond))
		wait(ctx, delay)
	}
	s.setStatus(StatusDisconnected, "", errors.New("the gateway is closed"), nil)
}

// maxBackoff bounds the delay between two attempts to connect.
const maxBackoff = 2 * time.Minute

// backoff returns the delay after a number of failures. random is from 0 to 1 and selects
// the upper half of the delay.
func backoff(least time.Duration, failures int, random float64) time.Duration {
	delay := least
	for range failures - 1 {
		delay = min(2*delay, maxBackoff)
	}
	return time.Duration(float64(delay) * (0.5 + random/2))
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func milliseconds(ms int, fallback time.Duration) time.Duration {
	if ms == 0 {
		return fallback
	}
	return time.Duration(ms) * time.Millisecond
}

// connect connects once, and reports whether it was connected and why the connection
// failed or was lost.
func (s *server) connect(ctx context.Context, expanded *mcpfile.Expanded) (connected bool, err error) {
	if s.declared.Transport == mcpfile.REST {
		return false, s.connectREST(ctx, expanded)
	}
	connectCtx, cancel := context.WithTimeout(ctx, milliseconds(s.declared.Timeouts.Connect, s.cfg.ConnectTimeout))
	defer cancel()
	session, err := mcpclient.Connect(connectCtx, expanded, s.cfg.Client)
	if err != nil {
		return false, err
	}
	if err = s.listTools(connectCtx, session); err == nil {
		connected = true
		s.setStatus(StatusConnected, "", nil, &sessionLink{session})
		err = s.watch(ctx, session)
	}
	s.setStatus(StatusConnecting, "", nil, nil) // no new calls
	return connected, errors.Join(err, session.Close())
}

// listTools replaces the tools by those that the server lists.
func (s *server) listTools(ctx context.Context, session *mcpclient.Session) error {
	list, err := session.Tools(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("the server did not list its tools in time")
		}
		return fmt.Errorf("list tools: %w", err)
	}
	tools, err := newTools(&s.declared, list)
	if err != nil {
		return err
	}
	s.setTools(tools)
	return nil
}

const (
	maxFailedProbes = 3
	// changeDelay joins several notifications about changed tools.
	changeDelay = 200 * time.Millisecond
)

// watch returns when the connection is lost or the server does not answer.
func (s *server) watch(ctx context.Context, session *mcpclient.Session) error {
	probe := time.NewTicker(s.cfg.ProbeInterval)
	defer probe.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-session.Done():
			return session.Err()
		case <-session.Changed():
			wait(ctx, changeDelay)
			if err := s.refresh(ctx, session); err != nil {
				s.log.Warn("MCP server did not list its changed tools", "error", err)
			}
		case <-probe.C:
			err := s.probe(ctx, session)
			if err == nil {
				failed = 0
				continue
			}
			if failed++; failed == maxFailedProbes {
				return fmt.Errorf("the server did not answer %d probes: %w", failed, err)
			}
		}
	}
}

func (s *server) refresh(ctx context.Context, session *mcpclient.Session) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ConnectTimeout)
	defer cancel()
	return s.listTools(ctx, session)
}

func (s *server) probe(ctx context.Context, session *mcpclient.Session) error {
	ctx, cancel := context.WithTimeout(ctx, milliseconds(s.declared.Timeouts.Probe, s.cfg.ProbeTimeout))
	defer cancel()
	return session.Probe(ctx)
}

// sessionLink calls tools of an MCP server.
type sessionLink struct{ *mcpclient.Session }

func (l *sessionLink) call(ctx context.Context, t *tool, c *toolCall) (*reply, error) {
	result, err := l.Call(ctx, t.Name, c.input, nil)
	if err != nil {
		return nil, err
	}
	return newReply(result), nil
}
