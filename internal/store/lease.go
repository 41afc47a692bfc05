package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A store at a URL belongs to one process at a time: the one that has written
// the key "owner" of this bucket and renews it. The bucket's age ends the lease
// of a process that is gone.
const (
	leaseBucket = "CAPROUTER_OWNER"
	leaseKey    = "owner"
)

// ownerLease is this process's ownership of an external store.
//
//	free ──Create──▶ ours ──Update every third of the TTL──▶ ours
//	                  │ not renewed for 9/10 of the TTL, or another's by now
//	                  ▼
//	                 lost (for good: writes are refused, Lost is closed)
type ownerLease struct {
	store      *Store
	bucket     *Bucket
	ttl        time.Duration
	start      time.Time    // monotonic: what expires is counted from
	validUntil atomic.Int64 // since start, when this process must count it as lost
	lost       chan struct{}
	once       sync.Once
	lostErr    error // why it was lost; set before lost is closed

	revision uint64 // of the key; keep's alone once it runs
}

// acquireLease becomes the owner, or says who is. It waits while it cannot tell a
// living owner from one that died without giving the store back: until the
// lease is renewed (ErrLocked) or has run out.
func (s *Store) acquireLease(ctx context.Context) (*ownerLease, error) {
	l := &ownerLease{store: s, start: time.Now(), lost: make(chan struct{})}
	if err := l.openBucket(ctx); err != nil {
		return nil, err
	}
	var first Entry
	for {
		began := time.Now()
		rev, err := l.bucket.Create(ctx, leaseKey, fmt.Appendf(nil, "%s (pid %d)", s.cfg.Owner, os.Getpid()))
		if err == nil {
			l.revision = rev
			l.extend(began)
			return l, nil
		}
		if !errors.Is(err, ErrExists) {
			return nil, err
		}
		held, err := l.bucket.Get(ctx, leaseKey)
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case first.Revision == 0:
			first = held
		case held.Revision != first.Revision:
			return nil, fmt.Errorf("%w: %s is owned by %s: stop it, or choose another store",
				ErrLocked, redactURL(s.cfg.URL), held.Value)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s is owned by %s, which may be gone: %w",
				ErrLocked, redactURL(s.cfg.URL), held.Value, context.Cause(ctx))
		case <-time.After(l.ttl / 20):
		}
	}
}

// openBucket opens the lease's bucket. The one that is there is taken as it is: to
// change its age would cut the lease of the process that has it.
func (l *ownerLease) openBucket(ctx context.Context) error {
	l.ttl = l.store.cfg.LeaseTTL
	l.bucket = newBucket(l.store, leaseBucket)
	return l.store.retry(ctx, "open the lease", func(ctx context.Context) error {
		stream, err := l.store.engine.js.Stream(ctx, l.bucket.streamName)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = l.store.engine.js.CreateStream(ctx, jetstream.StreamConfig{
				Name:              "KV_" + leaseBucket,
				Subjects:          []string{l.bucket.prefix + ">"},
				MaxMsgsPerSubject: 1,
				MaxAge:            l.ttl,
				Discard:           jetstream.DiscardNew,
				Duplicates:        duplicateWindow(l.ttl),
				AllowDirect:       true,
			})
		}
		if err != nil {
			return err
		}
		l.ttl, l.bucket.stream = stream.CachedInfo().Config.MaxAge, stream
		return nil
	})
}

// extend counts the lease as ours for another while. It is counted from before
// the renewal was sent, and ends a little before the server's own count, so
// that this process has stopped writing when another one may start.
func (l *ownerLease) extend(from time.Time) {
	l.validUntil.Store(int64(from.Sub(l.start) + l.ttl*9/10))
}

// remaining is how long the lease is still ours.
func (l *ownerLease) remaining() time.Duration {
	return time.Duration(l.validUntil.Load()) - time.Since(l.start)
}

// checkValid says whether this process may write. It looks at the clock itself: a
// process that was stopped for a while must not write before keep has noticed.
func (l *ownerLease) checkValid() error {
	select {
	case <-l.lost:
	default:
		if l.remaining() > 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: this process owns it no longer", ErrLocked)
}

// renewUntilLost renews the lease until ctx ends or it is lost.
func (l *ownerLease) renewUntilLost(ctx context.Context) error {
	wait := l.ttl / 3
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(wait, max(l.remaining(), 0))):
		}
		began := time.Now()
		renew, cancel := context.WithTimeout(ctx, max(l.remaining(), 0))
		rev, err := l.bucket.Update(renew, leaseKey, fmt.Appendf(nil, "%s (pid %d)", l.store.cfg.Owner, os.Getpid()), l.revision)
		cancel()
		switch {
		case err == nil:
			l.revision = rev
			l.extend(began)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // let go of, not lost
		case errors.Is(err, ErrConflict):
			l.markLost(l.takenError(ctx))
			return nil
		case l.remaining() <= 0:
			l.markLost(l.expiredError(err))
			return nil
		default:
			l.store.cfg.Logger.Warn("store: the owner lease could not be renewed", "error", err, "left", l.remaining())
		}
	}
}

// markLost ends the ownership.
func (l *ownerLease) markLost(why error) {
	l.once.Do(func() {
		l.lostErr = why
		l.store.cfg.Logger.Error("store: this process owns the store no longer and must stop", "error", why)
		close(l.lost)
	})
}

// takenError is why the lease is not what this process wrote last: another one has
// it, or it ran out and is nobody's.
func (l *ownerLease) takenError(ctx context.Context) error {
	l.validUntil.Store(0) // nothing is written while that is found out
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	held, err := l.bucket.Get(ctx, leaseKey)
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s is owned by %s now", ErrLocked, redactURL(l.store.cfg.URL), held.Value)
	case errors.Is(err, ErrNotFound):
		return l.expiredError(nil)
	}
	return fmt.Errorf("%w: another process owns %s now", ErrLocked, redactURL(l.store.cfg.URL))
}

// expiredError is why a lease has run out that nobody took: the server did not take a
// renewal (err), or this process did not get to send one.
func (l *ownerLease) expiredError(err error) error {
	url := redactURL(l.store.cfg.URL)
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%s was not reached for %s, after which another process may own the store: %w", url, l.ttl, err)
	}
	if err != nil && !errors.Is(err, ErrLocked) {
		return fmt.Errorf("%s took no renewal of the lease for %s, after which another process may own the store: %w", url, l.ttl, err)
	}
	return fmt.Errorf("%w: this process was held up for longer than the lease of %s at %s lasts, after which another one may own the store",
		ErrLocked, l.ttl, url)
}

// release gives the store back at once, when keep has ended.
func (l *ownerLease) release() {
	if l.checkValid() != nil {
		return // it may be another's by now
	}
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	_ = l.bucket.stream.Purge(ctx, jetstream.WithPurgeSubject(l.bucket.prefix+leaseKey))
}
