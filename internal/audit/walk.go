package audit

import (
	"context"
	"errors"
	"iter"
	"slices"
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

// batchPlace is the number of a batch, and a message at or behind it: its own one, unless the
// batch was rewritten.
type batchPlace struct{ number, seq uint64 }

// findBatch returns the first batch from a place on that is reached, as in walkBatches. found
// is false if there is none.
func (c *storedChain) findBatch(
	ctx context.Context, from store.ReadFrom, reached func(*batch) bool,
) (at batchPlace, found bool, err error) {
	if from.Since.IsZero() { // mostly the first message is in reach
		m, err := c.stream.Next(ctx, c.subjects.chain, max(from.Seq, 1))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return at, false, err
		}
		if b, ok := tryDecode(m); err == nil && ok && c.isPlausible(b) && reached(b) {
			number, err := c.firstReached(ctx, b.number, reached)
			return batchPlace{number, m.Seq}, err == nil, err
		}
	}
	err = c.walkBatches(ctx, from, reached, func(seq uint64, b *batch) error {
		at, found = batchPlace{b.number, seq}, true
		return store.ErrStop
	})
	return at, found, err
}

// Limits of what backwardWalk reads at a time, because a stream can only be read forwards.
const (
	firstWindow    = 64 // sequences
	maxWindow      = 2048
	maxWindowBytes = 8 << 20
)

// batchesBack returns the batches from the newest to the oldest one, which are places of
// findBatch or the end of the chain, in this order. The origin of each batch is set.
func (c *storedChain) batchesBack(ctx context.Context, newest, oldest batchPlace) iter.Seq2[*batch, error] {
	return func(yield func(*batch, error) bool) {
		w := backwardWalk{chain: c, next: newest.number, until: oldest.number, above: newest.seq + 1, end: newest.seq + 1, start: oldest.seq}
		err := w.run(ctx, func(b *batch) error {
			if !yield(b, nil) {
				return store.ErrStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrStop) {
			yield(nil, err)
		}
	}
}

// backwardWalk walks the batches of a chain from next down to until. The messages of these
// that were not rewritten have the sequences from start to before end.
type backwardWalk struct {
	chain       *storedChain
	next, until uint64
	start, end  uint64
	above       uint64 // sequence that is behind batch next, and not behind the message of a later batch
}

func (w *backwardWalk) run(ctx context.Context, fn func(*batch) error) error {
	for size := uint64(firstWindow); w.next >= w.until && w.end > w.start; {
		from, end := max(w.start, w.end-min(size, w.end)), w.end
		window, err := w.readWindow(ctx, from)
		if err != nil {
			return err
		}
		if size = min(2*size, maxWindow); w.end > from { // too large
			size = end - w.end
		}
		for _, b := range slices.Backward(window) {
			if b.number > w.next { // a duplicate, or invented
				continue
			}
			if err := w.walkRewritten(ctx, b.number+1, fn); err != nil {
				return err
			}
			w.next, w.above = b.number-1, b.seq
			if err := fn(b); err != nil {
				return err
			}
		}
	}
	return w.walkRewritten(ctx, w.until, fn)
}

// readWindow reads the messages from a sequence to the end of the walk, or the last ones if
// they are too large, and moves the end to the first one that it returns.
func (w *backwardWalk) readWindow(ctx context.Context, from uint64) (window []*batch, err error) {
	c, end, bytes := w.chain, w.end, 0
	w.end = from
	err = c.stream.Read(ctx, store.ReadFrom{Seq: max(from, 1), Before: end, Subject: c.subjects.chain}, func(m store.Message) error {
		b, ok := tryDecode(m)
		if !ok || !c.isPlausible(b) || b.number < w.until || b.number > w.next {
			return nil
		}
		if n := len(window); n > 0 && b.number <= window[n-1].number { // a duplicate, or invented
			return nil
		}
		window = append(window, b)
		for bytes += b.inlineSize(); bytes > maxWindowBytes && len(window) > 1; window = window[1:] {
			bytes -= window[0].inlineSize()
			w.end = window[1].seq
		}
		return nil
	})
	return window, err
}

// walkRewritten calls fn for the rewritten batches from next down to a number.
func (w *backwardWalk) walkRewritten(ctx context.Context, to uint64, fn func(*batch) error) error {
	for ; w.next >= to && w.next > 0; w.next-- {
		b, err := w.chain.readRewritten(ctx, w.next)
		if errors.Is(err, store.ErrNotFound) {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if b.origin == 0 { // rewritten by an earlier version, before there were other chains
			b.origin = w.above
		}
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

// inlineSize returns the size of the batch in its message.
func (b *batch) inlineSize() (size int) {
	for i := range b.entries {
		size += b.entries[i].encodedSize()
	}
	return size
}
