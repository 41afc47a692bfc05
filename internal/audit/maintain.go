package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

const (
	maintainEvery = time.Hour
	weighEvery    = time.Minute // whether the log is larger than it may be
	// maxPass bounds what one pass holds in memory; it goes on with the next.
	maxPass = 4096
)

// Run keeps the trail within its retention until ctx ends. What goes wrong is
// logged, and tried again at the next turn.
func (t *Log) Run(ctx context.Context) error {
	maintain, weigh := time.NewTicker(maintainEvery), time.NewTicker(weighEvery)
	defer maintain.Stop()
	defer weigh.Stop()
	for {
		err := t.EnforceRetention(ctx)
		for again := true; again; {
			if err != nil && ctx.Err() == nil {
				t.cfg.Logger.ErrorContext(ctx, "the audit trail is not within its retention", "error", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-maintain.C:
				again = false
			case <-weigh.C:
				err = t.maintain(ctx, t.trim)
			case <-t.heavy:
				err = t.maintain(ctx, t.trim)
			}
		}
	}
}

// weighing has the log weighed when it has grown by a fiftieth of what it may have,
// or is full: a burst must not have to wait for the next look.
func (t *Log) weighing(through appendFunc) appendFunc {
	grown := int64(0) // of the writer alone
	return func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		seq, err := through(ctx, subject, data, opts)
		if grown += int64(len(data)); t.cfg.Retention.MaxBytes > 0 && grown > t.cfg.Retention.MaxBytes/50 || errors.Is(err, store.ErrFull) {
			grown = 0
			select {
			case t.heavy <- struct{}{}:
			default: // it will be looked at anyway
			}
		}
		return seq, err
	}
}

// EnforceRetention makes one pass: contents that are too old go, and so does the
// beginning of a chain that is too old or too large. Each time the chain itself
// is told first, so that nothing goes without a reason.
func (t *Log) EnforceRetention(ctx context.Context) error {
	return t.maintain(ctx, t.expire, t.trim)
}

// maintain repeats each step until it finds nothing more to do.
func (t *Log) maintain(ctx context.Context, steps ...func(context.Context) (bool, error)) error {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	for _, step := range steps {
		for more := true; more; {
			var err error
			if more, err = step(ctx); err != nil {
				return fmt.Errorf("maintain the audit trail: %w", err)
			}
		}
	}
	return nil
}

// expire takes the contents of old batches away, and reports whether there may
// be more of them.
func (t *Log) expire(ctx context.Context) (more bool, err error) {
	if t.cfg.Retention.Contents <= 0 {
		return false, nil
	}
	old, mark, err := t.expired(ctx, t.cfg.Now().Add(-t.cfg.Retention.Contents))
	if err != nil || len(old) == 0 {
		return false, err
	}
	if err := t.append(ctx, &Record{Kind: KindAdmin, Event: EventExpire, UpTo: mark}); err != nil {
		return false, err
	}
	for _, seq := range old {
		m, err := t.cfg.Log.Get(ctx, seq)
		if errors.Is(err, store.ErrNotFound) {
			continue // an older copy of a batch that was before it in the list
		}
		if err != nil {
			return false, err
		}
		b, err := open(m)
		if err == nil {
			err = t.restate(ctx, b, func(int) bool { return true })
		}
		if err != nil {
			return false, err
		}
	}
	return len(old) == maxPass, nil
}

// expired finds messages of batches that are older than cutoff and have
// contents, and the newest of those batches. What has none is not here any more,
// since such batches lie under another subject. The last batch may be among them:
// what is said before they go makes it the last no more.
func (t *Log) expired(ctx context.Context, cutoff time.Time) (old []uint64, newest *ChainPosition, err error) {
	for _, subject := range []string{t.subjects.restated + "*", t.subjects.chain} {
		original := subject == t.subjects.chain
		err := t.cfg.Log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			b, ok := readable(m)
			switch {
			case !ok:
				return nil
			case !b.newest().Before(cutoff):
				if original {
					return store.ErrStop // those behind it are newer still
				}
				return nil
			case len(old) == maxPass:
				return store.ErrStop
			case !b.hasContent():
				return nil
			}
			old = append(old, m.Seq)
			if newest == nil || newest.Batch < b.number {
				newest = b.mark()
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return old, newest, nil
}

// trim takes the beginning of the chain away as far as it is too old or too
// large, and reports whether there may be more to take.
func (t *Log) trim(ctx context.Context) (more bool, err error) {
	c, err := t.cut(ctx)
	if err != nil || c.mark == nil {
		return false, err
	}
	if err := t.append(ctx, &Record{Kind: KindAdmin, Event: EventCheckpoint, UpTo: c.mark}); err != nil {
		return false, err
	}
	if c.before > 0 {
		if err := t.cfg.Log.Trim(ctx, c.before); err != nil {
			return false, err
		}
	}
	// Upwards, so that what is left of an interrupted trim still touches the
	// chain and is found by the next one.
	for _, number := range c.rewritten {
		n := strconv.FormatUint(number, 10)
		for _, subject := range []string{t.subjects.bare + n, t.subjects.restated + n} {
			if err := t.cfg.Log.Purge(ctx, subject); err != nil {
				return false, err
			}
		}
	}
	return c.batches == maxPass, nil
}

// cut is what a trim takes away: everything up to mark.
type cut struct {
	mark      *ChainPosition
	batches   int
	before    uint64   // the messages before this one; 0 = none
	rewritten []uint64 // and these batches, which lie behind it
}

func (t *Log) cut(ctx context.Context) (cut, error) {
	var c cut
	keep := t.cfg.Retention
	if keep.Chain <= 0 && keep.MaxBytes <= 0 {
		return c, nil
	}
	excess := int64(0)
	if keep.MaxBytes > 0 {
		info, err := t.cfg.Log.Info(ctx)
		if err != nil {
			return c, err
		}
		if int64(info.Bytes) > keep.MaxBytes { // make some room at once, not a batch at a time
			excess = int64(info.Bytes) - keep.MaxBytes/10*9
		} else if keep.Chain <= 0 {
			return c, nil
		}
	}
	end, now := t.now.Load().number, t.cfg.Now()
	err := t.walk(ctx, store.ReadFrom{}, func(*batch) bool { return true }, func(seq uint64, b *batch) error {
		tooOld := keep.Chain > 0 && b.newest().Before(now.Add(-keep.Chain))
		if b.number >= end || c.batches == maxPass || excess <= 0 && !tooOld {
			return store.ErrStop
		}
		excess -= b.weight()
		c.mark = b.mark()
		c.batches++
		if b.seq == seq {
			c.before = seq + 1
		} else {
			c.rewritten = append(c.rewritten, b.number)
		}
		return nil
	})
	return c, err
}

// weight is about what the batch takes of the log.
func (b *batch) weight() int64 {
	size := 0
	for i := range b.entries {
		size += b.entries[i].size() + len(b.entries[i].content.parts)*maxPart
	}
	return int64(size)
}
