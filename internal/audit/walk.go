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
func (c *storedChain) walkBatches(
	ctx context.Context, from store.ReadFrom, reached func(*batch) bool, fn func(seq uint64, b *batch) error,
) error {
	from.Subject = c.subjects.chain
	end := c.end.Load()
	begun, next, stopped := false, uint64(0), false
	walked := func(seq uint64, b *batch) error {
		err := fn(seq, b)
		stopped = stopped || errors.Is(err, store.ErrStop)
		return err
	}
	err := c.stream.Read(ctx, from, func(m store.Message) error {
		b, ok := tryDecode(m)
		if !ok || b.number < next || !c.isPlausible(b) {
			return nil // damaged, duplicate, or invented
		}
		if !begun {
			if begun = reached(b); !begun {
				next = b.number + 1
				return nil
			}
			first, err := c.firstReached(ctx, b.number, reached)
			if err != nil {
				return err
			}
			next = max(next, first)
		}
		if err := c.walkRewritten(ctx, next, b.number, func(r *batch) error { return walked(m.Seq, r) }); err != nil {
			return err
		}
		next = b.number + 1
		return walked(m.Seq, b)
	})
	if err != nil || stopped || !c.shared || end.number < next {
		return err
	}
	// Another replica has rewritten the last batches.
	first, err := c.firstReached(ctx, end.number+1, reached)
	if err != nil {
		return err
	}
	err = c.walkRewritten(ctx, max(next, first), end.number+1, func(r *batch) error { return fn(max(end.seq, 1), r) })
	if errors.Is(err, store.ErrStop) {
		return nil
	}
	return err
}

// walkRewritten calls fn for the rewritten batches of a gap.
func (c *storedChain) walkRewritten(ctx context.Context, from, to uint64, fn func(*batch) error) error {
	for ; from < to; from++ {
		b, err := c.readRewritten(ctx, from)
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
func (c *storedChain) isPlausible(b *batch) bool {
	at := c.end.Load()
	if c.shared && at != nil && b.seq > at.seq {
		return b.number <= at.number+1+(b.seq-at.seq) // it may not have been followed yet
	}
	return at == nil || b.number <= at.number+1
}

// firstReached returns the first wanted batch up to number: number itself, or a
// rewritten one right before it. It doubles its steps back and then bisects, because
// a year of batches may have been rewritten.
func (c *storedChain) firstReached(ctx context.Context, number uint64, reached func(*batch) bool) (uint64, error) {
	is := func(n uint64) (bool, error) {
		b, err := c.readRewritten(ctx, n)
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
func (c *storedChain) readRewritten(ctx context.Context, number uint64) (*batch, error) {
	n := strconv.FormatUint(number, 10)
	m, err := c.stream.Last(ctx, c.subjects.withoutContents+n)
	if errors.Is(err, store.ErrNotFound) {
		m, err = c.stream.Last(ctx, c.subjects.rewritten+n)
	}
	if errors.Is(err, store.ErrNotFound) { // it may have been replaced by one without contents meanwhile
		m, err = c.stream.Last(ctx, c.subjects.withoutContents+n)
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
func (c *storedChain) readBatch(ctx context.Context, r recordRef) (*batch, error) {
	m, err := c.stream.Get(ctx, r.seq)
	if errors.Is(err, store.ErrNotFound) {
		return c.readRewritten(ctx, r.number)
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
