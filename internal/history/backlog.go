package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

// Pauses between attempts to record a late response, and the time for the last ones.
const (
	minLatePause = 100 * time.Millisecond
	maxLatePause = 5 * time.Second
	closeTimeout = 2 * time.Second
)

// backlog contains the responses that could not be recorded when their requests ended,
// because the log was full or not available. Their callers have them, so they are recorded
// as soon as that is possible. It is safe for concurrent use.
type backlog struct {
	write func(ctx context.Context, rec *audit.Record) error
	group *run.Group

	mu      sync.Mutex
	records []*audit.Record // oldest first; immutable
	bytes   int64
	writing bool // a goroutine writes the records
	closed  bool
}

func newBacklog(write func(context.Context, *audit.Record) error) *backlog {
	return &backlog{write: write, group: run.New(context.Background())}
}

func sizeOfRecord(rec *audit.Record) int64 { return int64(len(rec.Content) + len(rec.Answer)) }

// add reports whether there is room for the record.
func (b *backlog) add(rec *audit.Record) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := sizeOfRecord(rec)
	if b.closed || len(b.records) >= maxBackground || b.bytes+size > maxBackgroundBytes {
		return false
	}
	b.records = append(b.records, rec)
	b.bytes += size
	if !b.writing {
		b.writing = true
		b.group.Go("record late responses", b.writeAll)
	}
	return true
}

// writeAll writes the records, the oldest first, until there are none or ctx ends.
func (b *backlog) writeAll(ctx context.Context) error {
	backoff := resilience.Backoff{Min: minLatePause, Max: maxLatePause}
	for backoff.Sleep(ctx) {
		for {
			rec := b.first()
			if rec == nil {
				return nil
			}
			if err := b.write(ctx, rec); err != nil && (store.IsTemporary(err) || ctx.Err() != nil) {
				break
			}
			b.removeFirst()
			backoff.Reset()
		}
	}
	return nil
}

// first returns the oldest record, or nil: then the goroutine that writes must end.
func (b *backlog) first() *audit.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.records) == 0 {
		b.writing = false
		return nil
	}
	return b.records[0]
}

func (b *backlog) removeFirst() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= sizeOfRecord(b.records[0])
	b.records = slices.Delete(b.records, 0, 1)
}

// lookUp returns the record of a request, or nil.
func (b *backlog) lookUp(requestID string) *audit.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rec := range b.records {
		if rec.RequestID == requestID {
			return rec
		}
	}
	return nil
}

// close tries once more to write the records. The error is that of the first one that
// cannot be written.
func (b *backlog) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.group.Stop(nil)
	if err := b.group.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	for rec := b.first(); rec != nil; rec = b.first() {
		if err := b.write(ctx, rec); err != nil {
			return fmt.Errorf("the responses of %d requests are not recorded: %w", len(b.records), err)
		}
		b.removeFirst()
	}
	return nil
}

// RecordLater records a response whose caller has it although RecordResponse has failed,
// as soon as the log accepts it. Until then, lookups in this process find it. If there is
// no room for it, it is lost.
func (j *Journal) RecordLater(r EncodedResponse) {
	r.record.Delayed = true
	j.backlog.add(&r.record)
}

// recordLate writes a response, unless an attempt that seemed to fail has written it.
func (j *Journal) recordLate(ctx context.Context, rec *audit.Record) error {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	found, err := j.log.Find(ctx, rec.RequestID)
	if err != nil && !errors.Is(err, store.ErrNotFound) || found.Outcome != nil {
		return err
	}
	late := *rec
	late.At = j.now().UTC()
	if err = j.log.Append(ctx, late); err == nil {
		j.logger.InfoContext(ctx, "the response to a request is in the audit log now", "request_id", rec.RequestID)
	}
	return err
}

// Unrecorded returns the outcome of a request that is not in the log yet, or nil.
func (j *Journal) Unrecorded(requestID string) *audit.Record { return j.backlog.lookUp(requestID) }
