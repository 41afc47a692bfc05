package store

import (
	"context"
	"time"
)

// GiveUp makes the embedded engine stop as it does after a write error, and
// returns once the store has started it again.
func (s *Store) GiveUp(why string) {
	before := s.engine.restarts.Load()
	limit := time.After(20 * time.Second)
	select {
	case s.engine.failures <- why:
	case <-limit:
		panic("the engine accepts no failure within 20 s")
	}
	for s.engine.restarts.Load() == before || s.Status().Err != nil {
		select {
		case <-time.After(time.Millisecond):
		case <-limit:
			panic("the engine is not restarted within 20 s")
		}
	}
}

// Restarts counts how often the engine was restarted.
func (s *Store) Restarts() int64 { return s.engine.restarts.Load() }

// BlobBytes is what a bucket's large values take.
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

// Matches is the check of a subject against a log's pattern.
func Matches(pattern, subject string) bool { return subjectMatches(pattern, subject) }

const OrphanAge = orphanAge

// Orphan leaves a large value behind as a crash does between it and its key.
func (b *Bucket) Orphan(ctx context.Context, key string, value []byte) error {
	if err := b.ensureBlobs(ctx); err != nil {
		return err
	}
	_, err := b.writeBlob(ctx, key, value)
	return err
}

// LoseBlobs removes all large values, and not their keys.
func (b *Bucket) LoseBlobs(ctx context.Context) { _ = b.blobs.stream.Purge(ctx) }

// StopRenewing makes a process look dead to the others.
func (s *Store) StopRenewing() { s.group.Stop(nil); _ = s.group.Wait() }

// Repair looks for damage in the files of a directory that no store has open.
func Repair(dir string) map[string][]Damage {
	cfg := Config{Dir: dir}.withDefaults()
	if found := cfg.repairFiles(context.Background()); len(found) > 0 {
		return found
	}
	return nil
}

// TakeLeaseAway writes another owner into the lease.
func (s *Store) TakeLeaseAway(ctx context.Context, owner string) {
	if _, err := newBucket(s, leaseBucket).Put(ctx, leaseKey, []byte(owner)); err != nil {
		panic(err)
	}
}

// DropLease makes the lease run out.
func (s *Store) DropLease(ctx context.Context) {
	if err := s.lease.bucket.Delete(ctx, leaseKey); err != nil {
		panic(err)
	}
}

// ResendUpdate writes an update twice with one message id, as a retry does after a
// lost confirmation, and returns both revisions.
func (b *Bucket) ResendUpdate(ctx context.Context, key string, value []byte, revision uint64) (first, second uint64, err error) {
	w := pendingWrite{stream: b.streamName, subject: b.prefix + key, data: value, messageID: "resend-" + key, expectLast: &revision}
	if first, err = b.store.publish(ctx, w); err != nil {
		return 0, 0, err
	}
	w.retried = true
	second, err = b.store.publish(ctx, w)
	return first, second, err
}
