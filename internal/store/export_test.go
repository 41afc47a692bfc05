package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store/repair"
	"github.com/caprouter/caprouter/internal/testkit"
)

// FailEngine stops the embedded engine as a write error does, and returns after the
// store has restarted it.
func (s *Store) FailEngine(why string) {
	before := s.engine.restarts.Load()
	limit := time.After(testkit.Patience)
	select {
	case s.engine.failures <- why:
	case <-limit:
		panic("the engine did not accept the failure in time")
	}
	for s.engine.restarts.Load() == before || s.Status().Err != nil {
		select {
		case <-time.After(time.Millisecond):
		case <-limit:
			panic("the engine was not restarted in time")
		}
	}
}

// RestartAlone restarts the engine while nothing supervises it. The store is not supervised
// any more.
func (s *Store) RestartAlone(ctx context.Context, why string) error {
	s.group.Stop(nil)
	if err := s.group.Wait(); err != nil {
		return err
	}
	s.restartEngine(ctx, why)
	return nil
}

// Restarts returns the number of restarts of the engine.
func (s *Store) Restarts() int64 { return s.engine.restarts.Load() }

// BlobBytes returns the size of a bucket's large values.
func (b *Bucket) BlobBytes() uint64 {
	if b.blobs.stream == nil {
		return 0
	}
	info, err := b.blobs.stream.Info(context.Background())
	if err != nil {
		panic(err)
	}
	return info.State.Bytes
}

// ComparedByEngine reports whether the engine compared the expected sequence of a message.
func (m Message) ComparedByEngine() bool {
	return m.header.Get(jetstream.ExpectedLastSubjSeqHeader) != ""
}

// SkipDamage searches for a readable message of the log behind a sequence.
func (l *Log) SkipDamage(ctx context.Context, from uint64) (next uint64, err error) {
	return l.store.skipDamage(ctx, l.name, directGet{Seq: from})
}

// Matches reports whether a subject matches a pattern of a log.
func Matches(pattern, subject string) bool { return subjectMatches(pattern, subject) }

// SetAttemptTimeout sets how long a call waits for an answer before it is repeated.
func (c *Config) SetAttemptTimeout(limit time.Duration) { c.attemptTimeout = limit }

const OrphanAge = orphanAge

// StoreOrphanBlob stores a large value without its key, as if the process had crashed between
// both writes.
func (b *Bucket) StoreOrphanBlob(ctx context.Context, key string, value []byte) error {
	if err := b.ensureBlobs(ctx); err != nil {
		return err
	}
	_, err := b.writeBlob(ctx, key, value)
	return err
}

// DeleteBlobs deletes all large values and keeps their keys.
func (b *Bucket) DeleteBlobs(ctx context.Context) { _ = b.blobs.stream.Purge(ctx) }

// RepairAtStart checks the files of a directory like Open. No store may have it open.
func RepairAtStart(dir string) (map[string][]repair.Damage, error) {
	cfg := Config{Dir: dir}.withDefaults()
	return cfg.engineFiles().RepairAtStart(context.Background(), false)
}

// CreateLegacyLease creates the lease of a release before replicas, which expires after a time.
func (s *Store) CreateLegacyLease(ctx context.Context, owner string, expiry time.Duration) {
	b, err := s.Bucket(ctx, BucketConfig{Name: legacyLeaseBucket, MaxAge: expiry})
	if err == nil {
		_, err = b.Put(ctx, legacyLeaseKey, []byte(owner))
	}
	if err != nil {
		panic(err)
	}
}

// ResendUpdate writes an update twice with the same message id, like a retry after the
// confirmation was lost, and returns both revisions.
func (b *Bucket) ResendUpdate(ctx context.Context, key string, value []byte, revision uint64) (first, second uint64, err error) {
	w := pendingWrite{stream: b.streamName, subject: b.prefix + key, data: value, messageID: "resend-" + key, expectLast: &revision}
	if first, err = b.store.publish(ctx, w); err != nil {
		return 0, 0, err
	}
	w.retried = true
	second, err = b.store.publish(ctx, w)
	return first, second, err
}

// DeleteDataKeys deletes the data keys of a value, as if the process had crashed before it wrote
// them.
func (b *Bucket) DeleteDataKeys(ctx context.Context, key string) error {
	return b.sealer.eraseDataKeys(ctx, key, func(contentkey.ID) bool { return true })
}

// ClearDataKeyCache empties the cache of data keys.
func (b *Bucket) ClearDataKeyCache() {
	b.sealer.mu.Lock()
	defer b.sealer.mu.Unlock()
	clear(b.sealer.cachedKeys)
}

// MoveDataKeys begins an epoch of data keys and ends all earlier ones, as if their values had
// expired.
func (b *Bucket) MoveDataKeys(ctx context.Context) error {
	v := b.sealer
	if err := v.beginEpoch(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	epochs := slices.SortedFunc(maps.Values(v.epochs), func(a, b *keyEpoch) int { return cmp.Compare(a.seq, b.seq) })
	v.mu.Unlock()
	for i := range len(epochs) - 1 {
		if err := v.endEpoch(ctx, epochs[i], epochs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// BeginEpoch begins an epoch of data keys, and does not end earlier ones.
func (b *Bucket) BeginEpoch(ctx context.Context) error { return b.sealer.beginEpoch(ctx) }

// CountDisconnect marks the connection as interrupted.
func (s *Store) CountDisconnect() { s.engine.disconnects.Add(1) }

// SignalReconnect signals that the connection was restored.
func (s *Store) SignalReconnect() { s.engine.reconnected <- struct{}{} }
