package audit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// walk calls fn for the batches from a place of the log on, in the order of the
// chain. Batches that were rewritten lie elsewhere: they are found by their
// numbers, where the log has a gap. reached says whether a batch belongs to what
// is asked for; it must be true for all batches behind one for which it is. A
// walk from the message seq meets the batch again.
func (t *Log) walk(
	ctx context.Context, from store.ReadFrom, reached func(*batch) bool, fn func(seq uint64, b *batch) error,
) error {
	from.Subject = t.subjects.chain
	begun, next := false, uint64(0)
	return t.cfg.Log.Read(ctx, from, func(m store.Message) error {
		b, ok := readable(m)
		if !ok || b.number < next || !t.plausible(b) {
			return nil // damaged, twice there, or made up
		}
		if !begun {
			if begun = reached(b); !begun {
				next = b.number + 1
				return nil
			}
			first, err := t.lead(ctx, b.number, reached)
			if err != nil {
				return err
			}
			next = max(next, first)
		}
		if err := t.fill(ctx, next, b.number, func(r *batch) error { return fn(m.Seq, r) }); err != nil {
			return err
		}
		next = b.number + 1
		return fn(m.Seq, b)
	})
}

// fill calls fn for the rewritten batches of a gap.
func (t *Log) fill(ctx context.Context, from, to uint64, fn func(*batch) error) error {
	for ; from < to; from++ {
		b, err := t.rewritten(ctx, from)
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

// plausible keeps a number that cannot be from being taken for a gap of that
// length.
func (t *Log) plausible(b *batch) bool {
	at := t.now.Load()
	return at == nil || b.number <= at.number+1
}

// lead returns the first batch before number that is asked for: number itself
// when no rewritten one right before it is. It doubles its steps back and then
// halves them, since a whole year may have been rewritten.
func (t *Log) lead(ctx context.Context, number uint64, reached func(*batch) bool) (uint64, error) {
	is := func(n uint64) (bool, error) {
		b, err := t.rewritten(ctx, n)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil && reached(b), err
	}
	first, step := number, uint64(1) // all from first on are reached
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
	low := first - min(step, first) // is not
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

// rewritten reads a batch as it was written anew after an erasure or an expiry.
func (t *Log) rewritten(ctx context.Context, number uint64) (*batch, error) {
	n := strconv.FormatUint(number, 10)
	m, err := t.cfg.Log.Last(ctx, t.subjects.bare+n)
	if errors.Is(err, store.ErrNotFound) {
		m, err = t.cfg.Log.Last(ctx, t.subjects.restated+n)
	}
	if err != nil {
		return nil, err
	}
	b, ok := readable(m)
	if !ok || b.number != number {
		return nil, store.ErrNotFound
	}
	return b, nil
}

// at reads a batch by the message it was written in, or by its number when it
// was rewritten since.
func (t *Log) at(ctx context.Context, r ref) (*batch, error) {
	m, err := t.cfg.Log.Get(ctx, r.seq)
	if errors.Is(err, store.ErrNotFound) {
		return t.rewritten(ctx, r.number)
	}
	if err != nil {
		return nil, err
	}
	return open(m)
}

// newest is the time of the batch's last record.
func (b *batch) newest() time.Time {
	rec, err := b.record(len(b.entries) - 1)
	if err != nil {
		return time.Time{}
	}
	return rec.At
}

// load reads a record with its content, wherever that is. A content that has
// gone meanwhile is one that was erased.
func (t *Log) load(ctx context.Context, b *batch, i int) (*Record, error) {
	rec, err := b.record(i)
	if err != nil || b.entries[i].content.state != contentApart {
		return rec, err
	}
	rec.Content, err = t.joined(ctx, &b.entries[i].content)
	if errors.Is(err, store.ErrNotFound) {
		rec.Erased = true
		return rec, nil
	}
	return rec, err
}

func (t *Log) joined(ctx context.Context, c *content) ([]byte, error) {
	var data []byte
	for _, seq := range c.parts {
		m, err := t.cfg.Log.Get(ctx, seq)
		if err != nil {
			return nil, err
		}
		data = append(data, m.Data...)
	}
	return data, nil
}
