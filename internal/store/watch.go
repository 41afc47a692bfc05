package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	// markerTTL is how long the marker of a deleted or expired key stays, so that
	// a watcher that was interrupted still finds it.
	markerTTL = time.Minute
	// minTTL is the shortest TTL that the engine accepts.
	minTTL = time.Second
)

// Headers of delete markers. The engine writes the first when a value expires
// (SubjectDeleteMarkerTTL); this package writes the second for a Delete, as the
// engine's own key-value client does.
const (
	markerReasonHeader = "Nats-Marker-Reason"
	operationHeader    = "KV-Operation"
	operationPurge     = "PURGE"
)

func isDeleteMarker(m Message) bool {
	return m.header.Get(markerReasonHeader) != "" || m.header.Get(operationHeader) == operationPurge
}

func (b *Bucket) checkTTL(ttl time.Duration) error {
	switch {
	case ttl == 0:
		return nil
	case !b.keyTTL:
		return errors.New("the bucket was opened without KeyTTL")
	case ttl < minTTL:
		return fmt.Errorf("a TTL of %s is shorter than %s", ttl, minTTL)
	}
	return nil
}

// removeKey deletes the message of a key. If keys can be watched, a delete marker
// replaces it.
func (b *Bucket) removeKey(ctx context.Context, key string) error {
	if !b.keyTTL {
		return b.store.purgeMessages(ctx, b.stream, jetstream.WithPurgeSubject(b.prefix+key))
	}
	return b.putDeleteMarker(ctx, key, nil)
}

// putDeleteMarker replaces the message of a key by a delete marker, if it has the revision;
// nil = any.
func (b *Bucket) putDeleteMarker(ctx context.Context, key string, revision *uint64) error {
	_, err := b.store.publish(ctx, pendingWrite{
		stream: b.streamName, subject: b.prefix + key, messageID: nuid.Next(), expectLast: revision, ttl: markerTTL,
		header: nats.Header{operationHeader: {operationPurge}},
	})
	return err
}

// Change is the new value of a watched key.
type Change struct {
	Entry        // without a Value if the key was deleted
	Deleted bool // the key was deleted, or has expired
}

// Watch calls fn for every key below a prefix of whole parts ("" = all), and then
// for every change, in order. If a key changes several times in quick succession,
// only the last change may be reported. Watch returns when ctx ends (ctx.Err()),
// when fn fails, or nil if fn returns ErrStop. A restart of the engine is a pause.
func (b *Bucket) Watch(ctx context.Context, prefix string, fn func(Change) error) error {
	if !b.keyTTL {
		return fmt.Errorf("watch %s: the bucket was opened without KeyTTL", b.name)
	}
	filter, err := b.subjectFilter(prefix)
	if err != nil {
		return fmt.Errorf("watch %s: %w", b.name, err)
	}
	f := follower{store: b.store, stream: b.streamName, filters: []string{filter}, next: 1}
	return f.run(ctx, func(m Message) error {
		if isDeleteMarker(m) {
			return fn(Change{Entry: Entry{Key: b.keyOf(m), Revision: m.Seq, At: m.At}, Deleted: true})
		}
		entry, err := b.toEntry(ctx, m)
		if errors.Is(err, ErrNotFound) {
			return nil // replaced since: the change that did so comes next
		}
		if err != nil {
			return err
		}
		return fn(Change{Entry: entry})
	})
}
