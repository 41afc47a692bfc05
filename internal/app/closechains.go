package app

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/internal/replicas"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

const (
	// closeChainAfter is how long a replica must be dead before its chain of the audit log is
	// closed: one that was only suspended, and returns before, is not fenced.
	closeChainAfter = time.Minute
	// closeChainInterval is how often the replicas are checked.
	closeChainInterval = 10 * time.Second
)

// chainCloser closes the chains of replicas that are dead, once for each of their
// processes. One goroutine uses it.
type chainCloser struct {
	closeChain func(ctx context.Context, replica string) (ended int, err error)
	since      map[string]time.Time // when a process was first seen dead, by owner
	closed     map[string]bool      // owners whose chain was closed
}

func newChainCloser(closeChain func(context.Context, string) (int, error)) *chainCloser {
	return &chainCloser{closeChain: closeChain, since: map[string]time.Time{}, closed: map[string]bool{}}
}

// closeDead closes the chains of the members that are dead long enough, and returns the
// number of requests that it ended. If another replica is faster, the next call finds
// nothing to do.
func (c *chainCloser) closeDead(ctx context.Context, members []replicas.Member, now time.Time) (ended int, err error) {
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		seen[m.Owner] = true
		since, known := c.since[m.Owner]
		switch {
		case m.Live:
			delete(c.since, m.Owner)
			continue
		case !known:
			c.since[m.Owner] = now
			continue
		case c.closed[m.Owner] || now.Sub(since) < closeChainAfter:
			continue
		}
		n, closeErr := c.closeChain(ctx, m.Name)
		ended += n
		if closeErr == nil {
			c.closed[m.Owner] = true
		} else if !errors.Is(closeErr, store.ErrConflict) {
			err = errors.Join(err, closeErr)
		}
	}
	for owner := range c.since { // rows of processes that are dead expire
		if !seen[owner] {
			delete(c.since, owner)
			delete(c.closed, owner)
		}
	}
	return ended, err
}

// closeDeadChains closes the chains of replicas that end while this one runs, until ctx
// ends. Another replica may do the same.
func closeDeadChains(ctx context.Context, c *serverCore) error {
	closer := newChainCloser(func(ctx context.Context, replica string) (int, error) {
		return c.router.CloseReplica(ctx, c.persistence.auditLog, replica)
	})
	for now := range run.Ticks(ctx, closeChainInterval) {
		ended, err := closer.closeDead(ctx, c.persistence.members.Members(), now)
		if ended > 0 {
			c.log.InfoContext(ctx, "recorded outcomes for requests of a dead replica", "requests", ended)
		}
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "the audit log of a replica that is dead cannot be closed, trying again", "error", err)
		}
	}
	return nil
}
