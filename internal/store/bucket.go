package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/caprouter/caprouter/internal/run"
)

// BucketConfig says what a bucket is.
type BucketConfig struct {
	Name string // letters, digits, _ and -
	// MaxAge is how long a value stays after it was written; 0 = for ever.
	MaxAge time.Duration
	// Share is the part of the store's MaxBytes that is set aside for this
	// bucket and that it cannot exceed; 0 = none of its own, it takes from what
	// is left.
	Share float64
}

// Entry is a key's current value.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64 // grows with each write to the bucket, and names this one
	At       time.Time
}

// Bucket holds keys, each with one value, which are changed by comparing
// revisions. A full bucket takes no more; it throws nothing away.
type Bucket struct {
	store      *Store
	name       string
	prefix     string // of the subjects
	streamName string
	stream     jetstream.Stream
	limit      int64 // bytes it may take, -1 = no limit of its own
	blobs      blobs
}

// newBucket is a bucket without its stream. The names are the engine's own
// layout of a bucket, so that its tools can look into one.
func newBucket(s *Store, name string) *Bucket {
	return &Bucket{store: s, name: name, prefix: "$KV." + name + ".", streamName: "KV_" + name, limit: -1}
}

// Bucket opens a bucket, which it creates when it is missing and adapts when
// the configuration is another by now.
func (s *Store) Bucket(ctx context.Context, cfg BucketConfig) (*Bucket, error) {
	if !validName.MatchString(cfg.Name) {
		return nil, fmt.Errorf("bucket name %q: want letters, digits, _ and -", cfg.Name)
	}
	limit, err := s.share(cfg.Share)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", cfg.Name, err)
	}
	b := newBucket(s, cfg.Name)
	b.limit = limit
	b.stream, err = s.ensure(ctx, spec{
		Name:              b.streamName,
		Subjects:          []string{b.prefix + ">"},
		MaxMsgsPerSubject: 1,
		MaxBytes:          limit,
		MaxAge:            cfg.MaxAge,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Duplicates:        window(cfg.MaxAge),
		AllowDirect:       true,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxMsgSize:        -1,
	})
	if err == nil {
		err = b.openBlobs(ctx, cfg.MaxAge)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", cfg.Name, err)
	}
	return b, nil
}

// window is for how long ids are remembered; the engine wants it within MaxAge.
func window(maxAge time.Duration) time.Duration {
	if maxAge > 0 {
		return min(maxAge, duplicates)
	}
	return duplicates
}

// Get reads a key. ErrNotFound.
func (b *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	entry, err := b.get(ctx, key)
	if err != nil {
		return Entry{}, fmt.Errorf("get %s/%s: %w", b.name, key, err)
	}
	return entry, nil
}

func (b *Bucket) get(ctx context.Context, key string) (Entry, error) {
	if err := checkKey(key); err != nil {
		return Entry{}, err
	}
	for tries := 0; ; tries++ {
		raw, m, err := b.newest(ctx, key)
		if err != nil {
			return Entry{}, err
		}
		entry, err := b.entry(ctx, raw, m)
		// A large value that is gone was replaced between the two reads.
		if err == nil || tries == rereads || !errors.Is(err, ErrNotFound) {
			return entry, damaged(err)
		}
	}
}

// rereads bounds how often a reader follows a value that others keep replacing.
const rereads = 8

// newest reads the message that holds a key.
func (b *Bucket) newest(ctx context.Context, key string) (*nats.Msg, Message, error) {
	return b.store.one(ctx, b.streamName, question{LastFor: b.prefix + key})
}

// entry makes a message an Entry, and fetches its value if that lies elsewhere.
func (b *Bucket) entry(ctx context.Context, raw *nats.Msg, m Message) (Entry, error) {
	e := Entry{Key: strings.TrimPrefix(m.Subject, b.prefix), Value: m.Data, Revision: m.Seq, At: m.At}
	ref := raw.Header.Get(blobHeader)
	if ref == "" {
		return e, nil
	}
	var err error
	e.Value, err = b.readBlob(ctx, e.Key, ref)
	return e, err
}

// Create writes a key that is not there, and returns its revision. ErrExists.
func (b *Bucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	rev, err := b.create(ctx, key, value)
	if err != nil {
		return 0, fmt.Errorf("create %s/%s: %w", b.name, key, err)
	}
	return rev, nil
}

func (b *Bucket) create(ctx context.Context, key string, value []byte) (uint64, error) {
	rev, err := b.put(ctx, key, value, new(uint64(0)))
	if errors.Is(err, ErrConflict) {
		return 0, ErrExists
	}
	return rev, err
}

// Update replaces the value of a key whose revision is still the given one, and
// returns the new revision. ErrConflict when it is another, or the key is gone.
func (b *Bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return 0, fmt.Errorf("update %s/%s: %w: revision 0 is no revision", b.name, key, ErrConflict)
	}
	rev, err := b.put(ctx, key, value, &revision)
	if err != nil {
		return 0, fmt.Errorf("update %s/%s: %w", b.name, key, err)
	}
	return rev, nil
}

// Put writes a key whatever is there, and returns its revision.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	rev, err := b.put(ctx, key, value, nil)
	if err != nil {
		return 0, fmt.Errorf("put %s/%s: %w", b.name, key, err)
	}
	return rev, nil
}

// CreateWith is Create, and writes a second key without a value, the mark, at
// the same time: a key of an index. It returns when both are on disk. When it
// fails the mark may be there without the key, but never the key alone is
// reported as written.
func (b *Bucket) CreateWith(ctx context.Context, key string, value []byte, mark string) (uint64, error) {
	var rev uint64
	var errs [2]error
	run.ForEach(ctx, 2, 2, func(ctx context.Context, i int) {
		if i == 0 {
			rev, errs[0] = b.create(ctx, key, value)
		} else {
			_, errs[1] = b.put(ctx, mark, nil, nil)
		}
	})
	// The key's error first: that it exists means more than a failed mark.
	for i, name := range []string{key, mark} {
		if errs[i] != nil {
			return 0, fmt.Errorf("create %s/%s: %w", b.name, name, errs[i])
		}
	}
	return rev, nil
}

// put writes one value, a large one beside the stream.
func (b *Bucket) put(ctx context.Context, key string, value []byte, after *uint64) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	w := write{stream: b.streamName, subject: b.prefix + key, data: value, id: nuid.Next(), after: after}
	if len(value) > maxInline || b.blobs.used.Load() {
		return b.putWithBlobs(ctx, key, w)
	}
	return b.store.publish(ctx, w)
}

// Delete removes a key, and nothing of it stays. It is no error when the key
// was not there.
//
// When the process is killed before the engine has written its index, the next
// one finds in the files which message was deleted, and takes the key's older
// values away as well. It cannot where the engine has rewritten the file of that
// message since, and not yet that of an older value: then that one is back.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	err := checkKey(key)
	old := ""
	if err == nil && b.blobs.used.Load() {
		old, err = b.reference(ctx, key)
	}
	if err == nil {
		err = b.store.purge(ctx, b.stream, jetstream.WithPurgeSubject(b.prefix+key))
	}
	if err == nil && old != "" {
		err = b.dropBlob(ctx, key, old)
	}
	if err != nil {
		return fmt.Errorf("delete %s/%s: %w", b.name, key, err)
	}
	return nil
}

// Scan calls fn for every key below a prefix of whole parts ("open." or "" for
// all), in the order of their revisions. A key that is written while the scan
// runs may come twice, then with its newer value last; none is left out. ErrStop
// from fn ends the scan without an error.
func (b *Bucket) Scan(ctx context.Context, prefix string, fn func(Entry) error) error {
	if prefix != "" && !strings.HasSuffix(prefix, ".") || prefix != "" && checkKey(prefix+"x") != nil {
		return fmt.Errorf("scan %s: prefix %q is not made of whole parts, like \"open.\"", b.name, prefix)
	}
	from := question{Seq: 1, NextFor: b.prefix + prefix + ">"}
	err := b.store.walk(ctx, b.streamName, from, func(raw *nats.Msg, m Message) error {
		entry, err := b.entry(ctx, raw, m)
		if errors.Is(err, ErrNotFound) { // replaced or deleted meanwhile, or damaged
			entry, err = b.get(ctx, strings.TrimPrefix(m.Subject, b.prefix))
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

// validKey: parts of letters, digits, - _ and =, joined by dots.
var validKey = regexp.MustCompile(`^[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*$`)

const maxKey = 512

func checkKey(key string) error {
	if len(key) > maxKey || !validKey.MatchString(key) {
		return fmt.Errorf("key %.80q: want at most %d of A-Z a-z 0-9 _ - = in parts joined by dots", key, maxKey)
	}
	return nil
}
