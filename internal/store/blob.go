package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// A value that is too large for one message is a blob: its bytes are chunks in a
// second stream, under a subject of their own that is never written twice. The
// message of the key contains a reference instead of the value.
//
//	$KV.REQUESTS.req.42                        Caprouter-Blob: 1795202086-Vx… 1500000 9f86d0…
//	$BLOB.REQUESTS.1795202086-Vx….req.42       chunk, chunk
//
// The blob is durable before the reference, and deleted after the reference has
// changed. A crash in between leaves an orphan, which the next opening of the bucket
// removes by age.
const (
	blobHeader = "Caprouter-Blob"
	maxInline  = 512 << 10
	chunkSize  = 768 << 10
	// orphanAge is the minimum age of an orphan, because a writer may be between the
	// blob and its reference.
	orphanAge = time.Hour
)

// blobState belongs to one bucket. The stream is created with the first blob,
// because most buckets have none.
type blobState struct {
	used atomic.Bool // the stream exists

	mu     sync.Mutex
	stream jetstream.Stream
	maxAge time.Duration // of the bucket
}

func (b *Bucket) blobStream() string { return blobPrefix + b.name }

// blobPrefix begins the names of streams of blobs.
const blobPrefix = "BLOB_"

func isBlobStream(stream string) bool { return strings.HasPrefix(stream, blobPrefix) }

func (b *Bucket) blobSubject(id, key string) string {
	return "$BLOB." + b.name + "." + id + "." + key
}

// openBlobs opens an existing stream, and removes orphans.
func (b *Bucket) openBlobs(ctx context.Context, maxAge time.Duration) error {
	b.blobs.maxAge = maxAge
	err := b.store.retry(ctx, "open", func(ctx context.Context) error {
		_, err := b.store.engine.js.Stream(ctx, b.blobStream())
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return ErrNotFound
		}
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = b.ensureBlobs(ctx)
	}
	if err != nil {
		return err
	}
	return b.removeOrphans(ctx)
}

// ensureBlobs creates the stream on first use.
func (b *Bucket) ensureBlobs(ctx context.Context) error {
	b.blobs.mu.Lock()
	defer b.blobs.mu.Unlock()
	if b.blobs.stream != nil {
		return nil
	}
	maxAge := b.blobs.maxAge
	if maxAge > 0 {
		maxAge += orphanAge // a blob must not expire before its key
	}
	stream, err := b.store.ensureStream(ctx, newStreamSpec(b.blobStream(), []string{b.blobSubject("*", ">")}, -1, maxAge))
	if err != nil {
		return err
	}
	b.blobs.stream = stream
	b.blobs.used.Store(true)
	return nil
}

// putWithBlobs writes a value if it, or the one before, may be a blob.
func (b *Bucket) putWithBlobs(ctx context.Context, key string, w pendingWrite) (uint64, error) {
	if err := b.ensureBlobs(ctx); err != nil {
		return 0, err
	}
	old, err := b.blobReference(ctx, key)
	if err != nil {
		return 0, err
	}
	fresh := ""
	if len(w.data) > maxInline {
		if fresh, err = b.writeBlob(ctx, key, w.data); err != nil {
			return 0, err
		}
		w.data, w.header = nil, nats.Header{blobHeader: {fresh}}
	}
	rev, err := b.store.publish(ctx, w)
	switch {
	case err == nil && old != "":
		_ = b.deleteBlob(ctx, key, old) // otherwise it is removed as an orphan
	case err != nil && fresh != "" && !isTransient(err): // after a transient error the key may refer to it
		_ = b.deleteBlob(ctx, key, fresh)
	}
	return rev, err
}

// blobReference returns the reference that a key has, or "".
func (b *Bucket) blobReference(ctx context.Context, key string) (string, error) {
	m, err := b.readLatest(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return m.header.Get(blobHeader), nil
}

// writeBlob writes a blob and returns its reference.
func (b *Bucket) writeBlob(ctx context.Context, key string, value []byte) (string, error) {
	if err := b.checkBlobCapacity(ctx, len(value)); err != nil {
		return "", err
	}
	id := strconv.FormatInt(b.store.cfg.Now().Unix(), 10) + "-" + nuid.Next()
	sum := sha256.Sum256(value)
	size := len(value)
	for part := 0; len(value) > 0; part++ {
		chunk := value[:min(chunkSize, len(value))]
		w := pendingWrite{stream: b.blobStream(), subject: b.blobSubject(id, key), data: chunk, messageID: id + "-" + strconv.Itoa(part)}
		if _, err := b.store.publish(ctx, w); err != nil {
			_ = b.deleteBlob(ctx, key, id)
			return "", err
		}
		value = value[len(chunk):]
	}
	return fmt.Sprintf("%s %d %s", id, size, hex.EncodeToString(sum[:])), nil
}

// checkBlobCapacity rejects a blob if the bucket and its blobs together would exceed
// the share.
func (b *Bucket) checkBlobCapacity(ctx context.Context, size int) error {
	if b.limit < 0 {
		return nil
	}
	taken, err := b.usedBytes(ctx)
	if err != nil {
		return err
	}
	if taken += uint64(size); taken > uint64(b.limit) {
		err := fmt.Errorf("%w: %d of %d bytes would be used", ErrFull, taken, b.limit)
		b.store.rejections.record(b.blobStream(), rejection{
			name: displayName(b.streamName), streams: []string{b.streamName, b.blobStream()}, limit: b.limit, size: int64(size),
		}, err)
		return err
	}
	return nil
}

// readBlob returns the value of a reference, or ErrNotFound if it is incomplete.
func (b *Bucket) readBlob(ctx context.Context, key, ref string) ([]byte, error) {
	var id, sum string
	var size int
	if _, err := fmt.Sscanf(ref, "%s %d %s", &id, &size, &sum); err != nil || size < 0 {
		return nil, fmt.Errorf("%w: reference %q", ErrDamaged, ref)
	}
	var value []byte
	from := directGet{Seq: 1, NextFor: b.blobSubject(id, key)}
	err := b.store.walkMessages(ctx, b.blobStream(), from, func(m Message) error {
		value = append(value, m.Data...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(value); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("%w: blob of %d bytes", ErrNotFound, size)
	}
	return value, nil
}

// asDamaged converts ErrNotFound of a blob that stays incomplete.
func asDamaged(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: the value is incomplete", ErrDamaged)
	}
	return err
}

// deleteBlob removes a blob by its reference or its id.
func (b *Bucket) deleteBlob(ctx context.Context, key, ref string) error {
	id, _, _ := strings.Cut(ref, " ")
	return b.store.purgeMessages(ctx, b.blobs.stream, jetstream.WithPurgeSubject(b.blobSubject(id, key)))
}

// removeOrphans removes old blobs without a reference.
func (b *Bucket) removeOrphans(ctx context.Context) error {
	var subjects map[string]uint64
	err := b.store.retry(ctx, "sweep", func(ctx context.Context) error {
		info, err := b.blobs.stream.Info(ctx, jetstream.WithSubjectFilter(b.blobSubject("*", ">")))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	})
	if err != nil {
		return err
	}
	before := b.store.cfg.Now().Add(-orphanAge).Unix()
	for subject := range subjects {
		id, key, _ := strings.Cut(strings.TrimPrefix(subject, "$BLOB."+b.name+"."), ".")
		born, _, _ := strings.Cut(id, "-")
		if at, err := strconv.ParseInt(born, 10, 64); err != nil || at > before {
			continue
		}
		ref, err := b.blobReference(ctx, key)
		if err != nil {
			return err
		}
		if strings.HasPrefix(ref, id+" ") {
			continue
		}
		if err := b.deleteBlob(ctx, key, id); err != nil {
			return err
		}
	}
	return nil
}
