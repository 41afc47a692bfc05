package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

const (
	attemptLimit = 3 * time.Second
	patience     = 10 * time.Second // for a caller that has no deadline
	firstPause   = 5 * time.Millisecond
	longestPause = 500 * time.Millisecond
	checkEvery   = time.Second
	longestDown  = 30 * time.Second
)

// try calls op until it succeeds, fails for good, or ctx (or patience) ends.
// Whoever passes a write makes sure that doing it twice does no harm.
func (s *Store) try(ctx context.Context, what string, op func(context.Context) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		attempt, cancel := s.engine.attempt(ctx, attemptLimit)
		err := classify(op(attempt))
		cancel()
		if err == nil || !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%w)", what, err, context.Cause(ctx))
		case <-s.closed:
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(pause):
		}
	}
}

// supervise restarts the embedded engine when it has given up.
func (s *Store) supervise(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		var why string
		select {
		case <-ctx.Done():
			return nil
		case why = <-s.engine.sick:
		case <-tick.C:
			if s.engine.healthy() {
				continue
			}
			why = "it has switched itself off"
		}
		s.restart(ctx, why)
	}
}

// healthy reports whether the embedded server runs with its storage on.
func (e *engine) healthy() bool {
	e.mu.Lock()
	srv := e.server
	e.mu.Unlock()
	return srv != nil && srv.JetStreamEnabled()
}

// restart stops the engine and starts it until that works or ctx ends.
func (s *Store) restart(ctx context.Context, why string) {
	log := s.cfg.Logger
	log.Error("store: the engine gave up, it is restarted", "reason", why)
	s.engine.stopServer(fmt.Errorf("%w: the engine gave up: %s", ErrUnavailable, why))
	s.engine.restarts.Add(1)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestDown) {
		err := s.engine.startServer(ctx)
		if err == nil {
			err = s.recreate(ctx)
		}
		if err == nil {
			log.Info("store: the engine runs again")
			return
		}
		log.Error("store: the engine does not start", "error", err, "retry_in", pause)
		s.engine.stopServer(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// redactURL is a server's address without what may be a secret.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the store's URL"
	}
	return u.Redacted()
}

// withoutURL leaves out of a parser's complaint what it complains about.
func withoutURL(err error) error {
	if parsing, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("it is no URL: %w", parsing.Err)
	}
	return err
}
