package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/resilience"
)

// errClosed is the error of a server that is not connected any more because it was removed,
// or because the gateway was closed.
var errClosed = errors.New("the gateway is closed")

// maintain keeps the server connected until the context ends.
func (s *server) maintain(ctx context.Context) {
	if s.declared.Disabled {
		s.setStatus(StatusDisconnected, StateDisabled, errors.New("the server is disabled by its declaration"), nil)
		return
	}
	lookup := s.cfg.Lookup
	if s.origin == OriginRegistration {
		lookup = noVariables
	}
	expanded, err := s.declared.Expand(lookup)
	if err != nil {
		s.setStatus(StatusError, StateBlocked, err, nil)
		return
	}
	if s.declared.Start == mcpfile.Lazy {
		s.attempted.set()
		select {
		case <-s.demanded.done():
		case <-ctx.Done():
			return
		}
	}
	for failures := 0; ctx.Err() == nil; {
		s.setStatus(StatusConnecting, "", nil, nil)
		start := time.Now()
		connected, err := s.connect(ctx, expanded)
		if ctx.Err() != nil {
			break
		}
		lasted := time.Since(start)
		if lasted >= stableAfter+s.cfg.ConnectTimeout || errors.Is(err, mcpclient.ErrExpired) && lasted >= s.cfg.MinBackoff {
			failures = 0
		}
		failures++
		switch {
		case errors.Is(err, mcpclient.ErrAuthRequired):
			s.setStatus(StatusError, StateAuthRequired, err, nil)
		case connected && failures == 1:
			s.setStatus(StatusConnecting, "", err, nil) // calls wait for the next attempt
		default:
			s.setStatus(StatusError, "", err, nil)
		}
		delay := resilience.AddJitter(backoffDelay(s.cfg.MinBackoff, failures))
		s.log.Warn("MCP server is not connected", "error", err, "retry_in_ms", delay.Milliseconds())
		s.cfg.wait(ctx, delay)
	}
	s.setStatus(StatusDisconnected, "", errClosed, nil)
}

// maxBackoff bounds the delay between two attempts to connect.
const maxBackoff = 2 * time.Minute

// backoffDelay returns the delay after a number of failures, without jitter.
func backoffDelay(least time.Duration, failures int) time.Duration {
	delay := least
	for range failures - 1 {
		delay = min(2*delay, maxBackoff)
	}
	return delay
}

// connect connects once, and reports whether it was connected and why the connection
// failed or was lost.
func (s *server) connect(ctx context.Context, expanded *mcpfile.Expanded) (connected bool, err error) {
	if s.declared.Transport == mcpfile.REST {
		return false, s.connectREST(ctx, expanded)
	}
	connectCtx, cancel := context.WithTimeout(ctx, milliseconds(s.declared.Timeouts.Connect, s.cfg.ConnectTimeout))
	defer cancel()
	session, err := mcpclient.Connect(connectCtx, expanded, s.client)
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

// A server that reports changes all the time is not listed all the time: between two lists there
// is a multiple of the time that one takes. Calls wait for it.
const (
	listPause    = 9
	maxListPause = 2 * time.Second
)

const (
	maxFailedProbes = 3
	// changeDelay joins several notifications about changed tools.
	changeDelay = 200 * time.Millisecond
)

// watch returns when the connection is lost or the server does not answer.
func (s *server) watch(ctx context.Context, session *mcpclient.Session) error {
	probe := time.NewTicker(milliseconds(s.declared.Health.IntervalMS, s.cfg.ProbeInterval))
	defer probe.Stop()
	failed := 0
	var earliest time.Time // of the next list
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-session.Done():
			return session.Err()
		case <-session.Changed():
			resilience.Sleep(ctx, max(changeDelay, time.Until(earliest)))
			start := time.Now()
			refreshCtx, cancel := context.WithTimeout(ctx, s.cfg.ConnectTimeout)
			err := s.listTools(refreshCtx, session)
			cancel()
			if err != nil { // calls wait for the new definitions
				return err
			}
			earliest = time.Now().Add(min(listPause*time.Since(start), maxListPause))
		case <-probe.C:
			err := s.probe(ctx, session)
			if err == nil {
				failed = 0
			} else if failed++; failed == maxFailedProbes {
				return fmt.Errorf("the server did not answer %d probes: %w", failed, err)
			}
			s.mu.Lock()
			s.failedProbes = failed
			s.mu.Unlock()
		}
	}
}

// probe checks that the server answers. A server that does not report changes of its
// tools lists them. It may report them for some lists only, so that the others are requested.
func (s *server) probe(ctx context.Context, session *mcpclient.Session) error {
	ctx, cancel := context.WithTimeout(ctx, milliseconds(s.declared.Timeouts.Probe, s.cfg.ProbeTimeout))
	defer cancel()
	if !session.ReportsChanges() && s.listTools(ctx, session) == nil {
		return nil
	}
	if err := session.Probe(ctx); err != nil {
		return err
	}
	if session.ReportsChanges() && s.listContents(ctx, session) {
		s.onStatus()
	}
	return nil
}

// stableAfter is how long a connection must last so that the backoff begins again.
const stableAfter = time.Minute
