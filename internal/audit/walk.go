package audit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// walkBatches calls fn for the batches from a place on, in the order of the chain.
// Rewritten batches are stored elsewhere, so a gap in the stream is filled by
// number. reached reports whether the walk starts at or before a batch; it must be
// true for all batches behind the first one. seq is a message from which a later
// walk meets the batch again.
func (l *Log) walkBatches(
	ctx context.Context, from store.ReadFrom, reached func(*batch) bool, fn func(seq uint64, b *batch) error,
) error {
	from.Subject = l.subjects.chain
	begun, next := false, uint64(0)
	return l.cfg.Log.Read(ctx, from, func(m store.Message) error {
		b, ok := tryDecode(m)
		if !ok || b.number < next || !l.isPlausible(b) {
			return nil // damaged, duplicate, or invented
		}
		if !begun {
			if begun = reached(b); !begun {
				next = b.number + 1
				return nil
			}
			first, err := l.firstReached(ctx, b.number, reached)
			if err != nil {
				return err
			}
			next = max(next, first)
		}
		if err := l.walkRewritten(ctx, next, b.number, func(r *batch) error { return fn(m.Seq, r) }); err != nil {
			return err
		}
		next = b.number + 1
		return fn(m.Seq, b)
	})
}

// walkRewritten calls fn for the rewritten batches of a gap.
func (l *Log) walkRewritten(ctx context.Context, from, to uint64, fn func(*batch) error) error {
	for ; from < to; from++ {
		b, err := l.readRewritten(ctx, from)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			err = fn(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isPlausible rejects an impossible number, which would otherwise be taken for a gap
// of that length.
func (l *Log) isPlausible(b *batch) bool {
	at := l.end.Load()
	return at == nil || b.number <= at.number+1
}

// firstReached returns the first wanted batch up to number: number itself, or a
// rewritten one right before it. It doubles its steps back and then bisects, because
// a year of batches may have been rewritten.
func (l *Log) firstReached(ctx context.Context, number uint64, reached func(*batch) bool) (uint64, error) {
	is := func(n uint64) (bool, error) {
		b, err := l.readRewritten(ctx, n)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil && reached(b), err
	}
	first, step := number, uint64(1) // all from first on are wanted
	for first > step {
		ok, err := is(first - step)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		first -= step
		step *= 2
	}
	low := first - min(step, first) // low is not wanted
	for low+1 < first {
		middle := low + (first-low)/2
		ok, err := is(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			first = middle
		} else {
			low = middle
		}
	}
	return first, nil
}

// readRewritten reads a batch that was rewritten by an erasure or expiry.
func (l *Log) readRewritten(ctx context.Context, number uint64) (*batch, error) {
	n := strconv.FormatUint(number, 10)
	m, err := l.cfg.Log.Last(ctx, l.subjects.withoutContents+n)
	if errors.Is(err, store.ErrNotFound) {
		m, err = l.cfg.Log.Last(ctx, l.subjects.rewritten+n)
	}
	if err != nil {
		return nil, err
	}
	b, ok := tryDecode(m)
	if !ok || b.number != number {
		return nil, store.ErrNotFound
	}
	return b, nil
}

// readBatch reads a batch from its first message, or by number if it was rewritten.
func (l *Log) readBatch(ctx context.Context, r recordRef) (*batch, error) {
	m, err := l.cfg.Log.Get(ctx, r.seq)
	if errors.Is(err, store.ErrNotFound) {
		return l.readRewritten(ctx, r.number)
	}
	if err != nil {
		return nil, err
	}
	return decodeMessage(m)
}

// newestTime returns the time of the last record.
func (b *batch) newestTime() time.Time {
	rec, err := b.decodeRecord(len(b.entries) - 1)
	if err != nil {
		return time.Time{}
	}
	return rec.At
}
