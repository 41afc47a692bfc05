package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A store at a URL belongs to the process that has created the key "owner" in this
// bucket and renews it. The bucket's MaxAge ends the lease of a dead process.
const (
	leaseBucket = "CAPROUTER_OWNER"
	leaseKey    = "owner"
)

// ownerLease is this process's ownership of an external store.
//
//	free ──Create──▶ ours ──Update every third of the TTL──▶ ours
//	                  │ not renewed for 9/10 of the TTL, or taken by another process
//	                  ▼
//	                 lost (permanently: writes are rejected, OwnershipLost is closed)
type ownerLease struct {
	store      *Store
	bucket     *Bucket
	ttl        time.Duration
	start      time.Time    // monotonic reference of validUntil
	validUntil atomic.Int64 // time since start when the lease counts as lost

	revision uint64 // of the key; used only by renewUntilLost once that runs
}

// acquireLease acquires the lease, or returns an error that names the owner. If the
// owner may be dead, it waits until the lease is renewed (ErrLocked) or has expired.
func (s *Store) acquireLease(ctx context.Context) (*ownerLease, error) {
	l := &ownerLease{store: s, start: time.Now()}
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
			return nil, fmt.Errorf("%w: %s is owned by %s, which may have ended: %w",
				ErrLocked, redactURL(s.cfg.URL), held.Value, context.Cause(ctx))
		case <-time.After(l.ttl / 20):
		}
	}
}

// openBucket opens the lease's bucket. An existing bucket stays as it is, because a
// change of its MaxAge would cut the lease of the owner.
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

// extend prolongs the lease. It counts from before the renewal was sent, and ends
// before the server's own count, so that this process stops writing before another
// one starts.
func (l *ownerLease) extend(from time.Time) {
	l.validUntil.Store(int64(from.Sub(l.start) + l.ttl*9/10))
}

// remaining returns how long the lease is valid.
func (l *ownerLease) remaining() time.Duration {
	return time.Duration(l.validUntil.Load()) - time.Since(l.start)
}

// checkValid returns an error if this process must not write. It reads the clock,
// because a process that was suspended must not write before renewUntilLost has
// noticed.
func (l *ownerLease) checkValid() error {
	if l.remaining() > 0 {
		return nil
	}
	return errNotOwned
}

// nextRenewal returns how long to wait for the next renewal: a third of the TTL after
// the one before began, however long that took.
func nextRenewal(ttl, sinceBegan, remaining time.Duration) time.Duration {
	return max(0, min(ttl/3-sinceBegan, remaining))
}

// renewUntilLost renews the lease until ctx ends or the lease is lost.
func (l *ownerLease) renewUntilLost(ctx context.Context) error {
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(nextRenewal(l.ttl, time.Since(began), l.remaining())):
		}
		began = time.Now()
		renew, cancel := context.WithTimeout(ctx, max(l.remaining(), 0))
		rev, err := l.bucket.Update(renew, leaseKey, fmt.Appendf(nil, "%s (pid %d)", l.store.cfg.Owner, os.Getpid()), l.revision)
		cancel()
		switch {
		case err == nil:
			l.revision = rev
			l.extend(began)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // stopped, not lost
		case errors.Is(err, ErrConflict):
			l.store.LoseOwnership(l.takenError(ctx))
			return nil
		case l.remaining() <= 0:
			l.store.LoseOwnership(l.expiredError(err))
			return nil
		default:
			l.store.cfg.Logger.Warn("store: the owner lease could not be renewed", "error", err, "left", l.remaining())
		}
	}
}

// takenError returns why the lease is not the one this process wrote: another
// process has it, or it has expired.
func (l *ownerLease) takenError(ctx context.Context) error {
	l.validUntil.Store(0) // reject writes meanwhile
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	held, err := l.bucket.Get(ctx, leaseKey)
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s is now owned by %s", ErrLocked, redactURL(l.store.cfg.URL), held.Value)
	case errors.Is(err, ErrNotFound):
		return l.expiredError(nil)
	}
	return fmt.Errorf("%w: another process now owns %s", ErrLocked, redactURL(l.store.cfg.URL))
}

// expiredError returns why a lease expired that no other process has: the server did
// not accept a renewal (err), or this process was too late to send one.
func (l *ownerLease) expiredError(err error) error {
	url := redactURL(l.store.cfg.URL)
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%s was not reached for %s, after which another process may own the store: %w", url, l.ttl, err)
	}
	if err != nil && !errors.Is(err, ErrLocked) {
		return fmt.Errorf("%s rejected renewals of the lease for %s, after which another process may own the store: %w", url, l.ttl, err)
	}
	return fmt.Errorf("%w: this process was suspended for longer than the lease of %s at %s, after which another process may own the store",
		ErrLocked, l.ttl, url)
}

// release gives up the lease, after renewUntilLost has returned.
func (l *ownerLease) release() {
	if l.checkValid() != nil {
		return // another process may have the lease
	}
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	_ = l.bucket.stream.Purge(ctx, jetstream.WithPurgeSubject(l.bucket.prefix+leaseKey))
}
