package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
)

const (
	attemptTimeout  = 3 * time.Second
	defaultTimeout  = 10 * time.Second // for a caller without a deadline
	minPause        = 5 * time.Millisecond
	maxPause        = 500 * time.Millisecond
	healthInterval  = time.Second
	maxRestartPause = 30 * time.Second
)

// retry calls op until it succeeds, fails permanently, or ctx (or defaultTimeout)
// ends, with exponential backoff. Writes must be idempotent.
func (s *Store) retry(ctx context.Context, what string, op func(context.Context) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	backoff := resilience.Backoff{Min: minPause, Max: maxPause}
	for {
		attempt, cancel := s.engine.attemptContext(ctx, s.cfg.attemptTimeout)
		err := classifyError(op(attempt))
		cancel()
		if err == nil || !isTransient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", what, err, context.Cause(ctx))
		case <-s.closed:
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(backoff.Next()):
		}
	}
}

// supervise restarts the embedded engine after it has failed.
func (s *Store) supervise(ctx context.Context) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		var why string
		select {
		case <-ctx.Done():
			return nil
		case why = <-s.engine.failures:
		case <-tick.C:
			if s.engine.isHealthy() {
				s.probeWrites(ctx)
				continue
			}
			why = "JetStream is disabled"
		}
		s.restartEngine(ctx, why)
	}
}

// isHealthy reports whether the embedded server runs with its storage enabled.
func (e *engine) isHealthy() bool {
	e.mu.Lock()
	srv := e.server
	e.mu.Unlock()
	return srv != nil && srv.IsHealthy()
}

// restartEngine stops the engine and starts it, with exponential backoff, until that
// succeeds or ctx ends.
func (s *Store) restartEngine(ctx context.Context, why string) {
	log := s.cfg.Logger
	log.Error("store: the engine failed, restarting it", "reason", why)
	s.failedWrite.Store(&why)
	s.engine.stopServer(fmt.Errorf("%w: the engine failed: %s", ErrUnavailable, why))
	s.engine.restarts.Add(1)
	backoff := resilience.Backoff{Min: minPause, Max: maxRestartPause}
	for ctx.Err() == nil {
		err := s.engine.startServer(ctx)
		if err == nil {
			err = s.recreateMemoryStreams(ctx)
		}
		if err == nil {
			log.Info("store: the engine is running again")
			s.probeAfterRestart(ctx)
			return
		}
		pause := backoff.Next()
		log.Error("store: the engine does not start", "error", err, "retry_in_ms", pause.Milliseconds())
		s.engine.stopServer(err)
		resilience.Sleep(ctx, pause)
	}
}

// probeAfterRestart writes a probe as soon as the client is connected, so that writes are
// not rejected until the next check of the engine's health. It ends with the first success
// or failure of the engine.
func (s *Store) probeAfterRestart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthInterval)
	defer cancel()
	backoff := resilience.Backoff{Min: minPause, Max: maxPause}
	for s.failedWrite.Load() != nil && len(s.engine.failures) == 0 && backoff.Sleep(ctx) {
		// A probe gets no answer if the client has not noticed yet that its server is gone.
		attempt, end := context.WithTimeout(ctx, healthInterval/10)
		s.probeWrites(attempt)
		end()
	}
}

// recreateAfterReconnect recreates the streams in memory after each reconnect to an
// external server until ctx ends, because the server may have been restarted.
func (s *Store) recreateAfterReconnect(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.engine.reconnected:
		}
		backoff := resilience.Backoff{Min: minPause, Max: maxPause}
		for ctx.Err() == nil {
			disconnects := s.engine.disconnects.Load()
			err := s.recreateMemoryStreams(ctx)
			if err == nil {
				s.engine.recreated.Store(disconnects)
				break
			}
			pause := backoff.Next()
			s.cfg.Logger.WarnContext(ctx, "store: cannot recreate the streams in memory", "error", err, "retry_in_ms", pause.Milliseconds())
			resilience.Sleep(ctx, pause)
		}
	}
}

// redactURL returns the addresses of servers without their passwords.
func redactURL(raw string) string {
	addrs := strings.Split(raw, ",")
	for i, addr := range addrs {
		u, err := url.Parse(addr)
		if err != nil {
			return "the store's URL"
		}
		addrs[i] = u.Redacted()
	}
	return strings.Join(addrs, ",")
}

// withoutURL removes the URL, which may contain a password, from an error of
// url.Parse.
func withoutURL(err error) error {
	if parsing, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("invalid URL: %w", parsing.Err)
	}
	return err
}
