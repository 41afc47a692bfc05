package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/caprouter/caprouter/internal/contentkey"
)

// BucketConfig describes a bucket.
type BucketConfig struct {
	Name string // letters, digits, _ and -
	// MaxAge is how long a value stays after its write; 0 = no limit.
	MaxAge time.Duration
	// Share is the part of the store's MaxBytes that is reserved for this bucket and
	// limits it; 0 = no reservation and no limit of its own.
	Share float64
	// KeyTTL allows values with a time to live of their own, and Watch: a key that
	// is deleted or expires leaves a marker for a minute, so that watchers notice.
	KeyTTL bool
	// Keys encrypt the values: each key has a data key of its own, which Delete
	// erases. Nil = values are stored in clear. Not together with KeyTTL.
	Keys *contentkey.Keyring
	// Existing opens a bucket with small values that are not encrypted as it is, for reading,
	// or returns ErrNotFound.
	Existing bool
	// OnWrite is called after each write with the size of the value, and with -1
	// after a delete; not for a value that expires. Nil = none.
	OnWrite func(key string, size int)
}

// Entry is a key's current value.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64 // grows with each write to the bucket, and names this one
	At       time.Time
}

// Bucket holds keys with one value each, which are changed by comparing revisions
// (optimistic concurrency control). A full bucket rejects writes; it discards
// nothing. A [Table] is its typed form.
type Bucket struct {
	store      *Store
	name       string
	prefix     string // of the subjects
	streamName string
	stream     jetstream.Stream
	limit      int64 // bytes it may take, -1 = no limit of its own
	keyTTL     bool
	onWrite    func(key string, size int)
	blobs      blobState
	sealer     *valueSealer // nil = values are stored in clear
}

// bucketStream begins the names of streams of buckets.
const bucketStream = "KV_"

// BucketStreams returns the names of the streams of a bucket, in the order in which a copy of
// their files is consistent: a value whose data key is not in the copy was erased meanwhile.
func BucketStreams(name string) []string {
	return []string{bucketStream + name, blobPrefix + name, keyLogPrefix + name}
}

// newBucket returns a bucket without its stream. The names are the engine's own
// layout of a bucket, so that its tools can look into one.
func newBucket(s *Store, name string) *Bucket {
	return &Bucket{store: s, name: name, prefix: "$KV." + name + ".", streamName: bucketStream + name, limit: -1, onWrite: func(string, int) {}}
}

// Bucket opens a bucket. It creates a missing one, and adapts an existing one to
// the configuration.
func (s *Store) Bucket(ctx context.Context, cfg BucketConfig) (*Bucket, error) {
	if !validName.MatchString(cfg.Name) {
		return nil, fmt.Errorf("bucket name %q: want letters, digits, _ and -", cfg.Name)
	}
	if cfg.Existing {
		b := newBucket(s, cfg.Name)
		var err error
		if b.stream, err = existingStream(ctx, s, b.streamName); err != nil {
			return nil, fmt.Errorf("bucket %s: %w", cfg.Name, err)
		}
		return b, nil
	}
	limit, err := s.cfg.shareBytes(cfg.Share)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", cfg.Name, err)
	}
	b := newBucket(s, cfg.Name)
	b.limit, b.keyTTL = limit, cfg.KeyTTL
	if cfg.OnWrite != nil {
		b.onWrite = cfg.OnWrite
	}
	sp := newStreamSpec(b.streamName, []string{b.prefix + ">"}, limit, cfg.MaxAge)
	sp.MaxMsgsPerSubject = 1
	if cfg.KeyTTL {
		sp.AllowMsgTTL, sp.AllowRollup, sp.SubjectDeleteMarkerTTL = true, true, markerTTL
	}
	b.stream, err = s.ensureStream(ctx, sp)
	if err == nil {
		err = b.openBlobs(ctx, cfg.MaxAge)
	}
	if err == nil && cfg.Keys != nil {
		b.sealer, err = s.openSealer(ctx, b, &cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", cfg.Name, err)
	}
	if b.sealer != nil && cfg.MaxAge > 0 {
		s.group.Go("erase data keys of "+cfg.Name, b.sealer.eraseExpired)
	}
	return b, nil
}

// duplicateWindow returns how long the engine remembers message ids; it must be
// within MaxAge.
func duplicateWindow(maxAge time.Duration) time.Duration {
	if maxAge > 0 {
		return min(maxAge, duplicateMemory)
	}
	return duplicateMemory
}

// Get reads a key, or returns ErrNotFound.
func (b *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	entry, err := b.getEntry(ctx, key)
	if err != nil {
		return Entry{}, fmt.Errorf("get %s/%s: %w", b.name, key, err)
	}
	return entry, nil
}

func (b *Bucket) getEntry(ctx context.Context, key string) (Entry, error) {
	if err := checkKey(key); err != nil {
		return Entry{}, err
	}
	for tries, unreadable := 0, uint64(0); ; tries++ {
		m, err := b.readLatest(ctx, key)
		if err != nil {
			return Entry{}, err
		}
		entry, err := b.toEntry(ctx, m)
		if errors.Is(err, errKeyErased) {
			if m.Seq == unreadable {
				return Entry{}, err
			}
			unreadable = m.Seq
			continue
		}
		// A blob that is missing was replaced between the two reads.
		if err == nil || tries == maxRereads || !errors.Is(err, ErrNotFound) {
			return entry, asDamaged(err)
		}
	}
}

// maxRereads bounds the retries of a reader whose value is replaced again and again.
const maxRereads = 8

// readLatest returns the message of a key.
func (b *Bucket) readLatest(ctx context.Context, key string) (Message, error) {
	m, err := b.store.readMessage(ctx, b.streamName, directGet{LastFor: b.prefix + key})
	if err == nil && isDeleteMarker(m) {
		return Message{}, ErrNotFound
	}
	return m, err
}

func (b *Bucket) keyOf(m Message) string { return strings.TrimPrefix(m.Subject, b.prefix) }

// toEntry converts a message, fetches its value if it is a blob, and decrypts it.
func (b *Bucket) toEntry(ctx context.Context, m Message) (e Entry, err error) {
	e = Entry{Key: b.keyOf(m), Value: m.Data, Revision: m.Seq, At: m.At}
	if ref := m.header.Get(blobHeader); ref != "" {
		if err := b.ensureBlobs(ctx); err != nil { // another process may have created them
			return Entry{}, err
		}
		e.Value, err = b.readBlob(ctx, e.Key, ref)
	}
	if err == nil && b.sealer != nil {
		e.Value, err = b.sealer.open(ctx, e.Key, e.Revision, e.Value)
	}
	return e, err
}

// Create writes a key that does not exist, and returns its revision. ErrExists.
func (b *Bucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	rev, err := b.createKey(ctx, key, value, 0)
	if err != nil {
		return 0, fmt.Errorf("create %s/%s: %w", b.name, key, err)
	}
	return rev, nil
}

// createKey writes a new key, which expires after ttl; 0 = with the bucket's MaxAge.
func (b *Bucket) createKey(ctx context.Context, key string, value []byte, ttl time.Duration) (uint64, error) {
	rev, err := b.putKey(ctx, key, value, new(uint64(0)), ttl)
	if b.keyTTL && errors.Is(err, ErrConflict) {
		// The key may have a delete marker: replace that.
		m, readErr := b.store.readMessage(ctx, b.streamName, directGet{LastFor: b.prefix + key})
		if readErr == nil && isDeleteMarker(m) {
			rev, err = b.putKey(ctx, key, value, &m.Seq, ttl)
		}
	}
	if b.sealer != nil && errors.Is(err, ErrConflict) {
		rev, err = b.sealer.replaceUnreadable(ctx, key, value)
	}
	if errors.Is(err, ErrConflict) {
		return 0, ErrExists
	}
	return rev, err
}

// Update replaces the value of a key if its revision is still the given one, and
// returns the new revision. ErrConflict if the revision differs or the key does
// not exist.
func (b *Bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	rev, err := b.updateKey(ctx, key, value, revision, 0)
	if err != nil {
		return 0, fmt.Errorf("update %s/%s: %w", b.name, key, err)
	}
	return rev, nil
}

// updateKey sets the TTL anew: the engine drops that of the value before.
func (b *Bucket) updateKey(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if revision == 0 {
		return 0, fmt.Errorf("%w: revision 0 is no revision", ErrConflict)
	}
	return b.putKey(ctx, key, value, &revision, ttl)
}

// Put writes a key unconditionally, and returns its revision.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	rev, err := b.putKey(ctx, key, value, nil, 0)
	if err != nil {
		return 0, fmt.Errorf("put %s/%s: %w", b.name, key, err)
	}
	return rev, nil
}

// putKey writes a value, encrypted if the bucket has keys.
func (b *Bucket) putKey(ctx context.Context, key string, value []byte, after *uint64, ttl time.Duration) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	if err := b.checkTTL(ttl); err != nil {
		return 0, err
	}
	if b.sealer != nil && len(value) > 0 {
		return b.sealer.put(ctx, key, value, after)
	}
	return b.putStored(ctx, key, value, after, ttl)
}

// putStored writes a value as it is stored, or a blob and its reference.
func (b *Bucket) putStored(ctx context.Context, key string, value []byte, after *uint64, ttl time.Duration) (uint64, error) {
	w := pendingWrite{stream: b.streamName, subject: b.prefix + key, data: value, messageID: nuid.Next(), expectLast: after, ttl: ttl}
	var revision uint64
	var err error
	if len(value) > maxInline || b.blobs.used.Load() {
		revision, err = b.putWithBlobs(ctx, key, w)
	} else {
		revision, err = b.store.publish(ctx, w)
	}
	if err == nil {
		b.onWrite(key, len(value))
	}
	return revision, err
}

// Delete removes a key with its value. It is no error if the key does not exist. If the
// values are encrypted, no revision can be read any more; otherwise the bytes stay in the
// engine's files for a while.
//
// If the process is killed before the engine has written its index, the next process
// removes older values of the deleted key from the files. It cannot if the engine
// has rewritten the file with the deleted message, but not yet that of an older
// value: then this value appears again.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	err := checkKey(key)
	if err == nil && b.sealer != nil {
		err = b.sealer.erase(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("delete %s/%s: %w", b.name, key, err)
	}
	return b.Discard(ctx, key)
}

// Discard removes a key as Delete does, and is faster: revisions of its value can be
// decrypted until they would have expired, or until Delete is called.
func (b *Bucket) Discard(ctx context.Context, key string) error {
	return b.discard(ctx, key, b.removeKey)
}

// DeleteRevision removes a key as Delete does, unless it has a later revision: then it
// returns ErrConflict. The bucket must not have Keys.
func (b *Bucket) DeleteRevision(ctx context.Context, key string, revision uint64) error {
	return b.discard(ctx, key, func(ctx context.Context, key string) error {
		if b.sealer != nil {
			return errors.New("the bucket has keys")
		}
		var err error
		if b.keyTTL {
			if err = b.putDeleteMarker(ctx, key, &revision); err == nil {
				return nil
			}
		} else {
			err = b.store.purgeMessages(ctx, b.stream, jetstream.WithPurgeSubject(b.prefix+key), jetstream.WithPurgeSequence(revision+1))
		}
		if err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
		switch _, err := b.readLatest(ctx, key); {
		case err == nil:
			return ErrConflict
		case !errors.Is(err, ErrNotFound):
			return err
		}
		return nil
	})
}

// discard removes a key with a function, and then its blob.
func (b *Bucket) discard(ctx context.Context, key string, remove func(ctx context.Context, key string) error) error {
	err := checkKey(key)
	old := ""
	if err == nil && (b.blobs.used.Load() || b.store.cfg.URL != "") { // another process may have written one
		old, err = b.blobReference(ctx, key)
	}
	if err == nil {
		if err = remove(ctx, key); err == nil {
			b.onWrite(key, -1)
		}
	}
	if err == nil && old != "" {
		if err = b.ensureBlobs(ctx); err == nil {
			err = b.deleteBlob(ctx, key, old)
		}
	}
	if err != nil {
		return fmt.Errorf("delete %s/%s: %w", b.name, key, err)
	}
	return nil
}

// Scan calls fn for every key below a prefix of whole parts ("open." or "" for all),
// in the order of their revisions. A key that is written meanwhile may be reported
// twice, then with its newer value last; none is left out. ErrStop from fn ends the
// scan without an error.
func (b *Bucket) Scan(ctx context.Context, prefix string, fn func(Entry) error) error {
	filter, err := b.subjectFilter(prefix)
	if err != nil {
		return fmt.Errorf("scan %s: %w", b.name, err)
	}
	from := directGet{Seq: 1, NextFor: filter}
	err = b.store.walkMessages(ctx, b.streamName, from, func(m Message) error {
		if isDeleteMarker(m) {
			return nil
		}
		entry, err := b.toEntry(ctx, m)
		if errors.Is(err, ErrNotFound) { // replaced, deleted or damaged
			entry, err = b.getEntry(ctx, b.keyOf(m))
			if errors.Is(err, ErrNotFound) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		return fn(entry)
	})
	if err != nil {
		return fmt.Errorf("scan %s/%s: %w", b.name, prefix, err)
	}
	return nil
}

// subjectFilter returns the subjects of the keys below a prefix.
func (b *Bucket) subjectFilter(prefix string) (string, error) {
	if prefix != "" && (!strings.HasSuffix(prefix, ".") || checkKey(prefix+"x") != nil) {
		return "", fmt.Errorf("prefix %q is not made of whole parts, like \"open.\"", prefix)
	}
	return b.prefix + prefix + ">", nil
}

// CheckWritable is Store.CheckWritable.
func (b *Bucket) CheckWritable() error { return b.store.CheckWritable() }

// Usage returns the used part of the bucket's share, blobs included, from 0 to 1; 0
// for a bucket without a share.
func (b *Bucket) Usage(ctx context.Context) (float64, error) {
	if b.limit <= 0 {
		return 0, nil
	}
	taken, err := b.usedBytes(ctx)
	if err != nil {
		return 0, fmt.Errorf("usage of bucket %s: %w", b.name, err)
	}
	return float64(taken) / float64(b.limit), nil
}

// usedBytes returns the size of the bucket and its blobs.
func (b *Bucket) usedBytes(ctx context.Context) (taken uint64, err error) {
	b.blobs.mu.Lock()
	streams := []jetstream.Stream{b.stream, b.blobs.stream}
	b.blobs.mu.Unlock()
	for _, stream := range streams {
		if stream == nil { // there are no blobs
			continue
		}
		err := b.store.retry(ctx, "info", func(ctx context.Context) error {
			info, err := stream.Info(ctx)
			if err == nil {
				taken += info.State.Bytes
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return taken, nil
}

// NoBucket is the bucket of a router without a store: it discards every value.
type NoBucket struct{}

// Get returns ErrNotFound.
func (NoBucket) Get(context.Context, string) (Entry, error) { return Entry{}, ErrNotFound }

// Create discards the value.
func (NoBucket) Create(context.Context, string, []byte) (uint64, error) { return 1, nil }

// Update discards the value.
func (NoBucket) Update(context.Context, string, []byte, uint64) (uint64, error) { return 1, nil }

// Delete does nothing.
func (NoBucket) Delete(context.Context, string) error { return nil }

// Discard does nothing.
func (NoBucket) Discard(context.Context, string) error { return nil }

// EraseHistory does nothing.
func (NoBucket) EraseHistory(context.Context, string) error { return nil }

// Scan calls nothing.
func (NoBucket) Scan(context.Context, string, func(Entry) error) error { return nil }
