package store

import (
	"context"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
)

const (
	attemptTimeout = 3 * time.Second
	defaultTimeout = 10 * time.Second // for a caller without a deadline
	minPause       = 5 * time.Millisecond
	maxPause       = 500 * time.Millisecond
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
