package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

const (
	retentionInterval = time.Hour
	sizeInterval      = time.Minute
	// maxBatchesPerPass bounds the memory of one pass; the next pass continues.
	maxBatchesPerPass = 4096
)

// Run enforces the retention until ctx ends. It logs errors and tries again after
// the next interval.
func (l *Log) Run(ctx context.Context) error {
	maintain, weigh := time.NewTicker(retentionInterval), time.NewTicker(sizeInterval)
	defer maintain.Stop()
	defer weigh.Stop()
	if err := l.loadUsage(ctx); err != nil && ctx.Err() == nil {
		l.cfg.Logger.ErrorContext(ctx, "the shares of tenants are not enforced", "error", err)
	}
	for {
		err := l.EnforceRetention(ctx)
		l.warnOfFullShares(ctx)
		for again := true; again; {
			if err != nil && ctx.Err() == nil {
				l.cfg.Logger.ErrorContext(ctx, "enforce the retention of the audit log", "error", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-maintain.C:
				again = false
			case <-weigh.C:
				err = l.runSteps(ctx, l.evictContents, l.trimChain)
			case <-l.oversized:
				err = l.runSteps(ctx, l.evictContents, l.trimChain)
			}
		}
	}
}

// watchSize wraps an append function. It requests a check of the size after the
// stream has grown by 1/50 of its limit or is full, because a burst must not wait
// for the next interval.
func (l *Log) watchSize(through appendFunc) appendFunc {
	grown := int64(0) // used by the writer goroutine only
	return func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		seq, err := through(ctx, subject, data, opts)
		if err == nil {
			l.size.Add(int64(len(data)) + messageOverhead)
		}
		if grown += int64(len(data)); l.cfg.Retention.MaxBytes > 0 && grown > l.cfg.Retention.MaxBytes/50 || errors.Is(err, store.ErrFull) {
			grown = 0
			l.requestSizeCheck()
		}
		return seq, err
	}
}

// messageOverhead is about what the stream stores beside the data of a message: subject,
// headers and checksum.
const messageOverhead = 256

func (k *shareKeeper) requestSizeCheck() {
	select {
	case k.log.oversized <- struct{}{}:
	default: // a check is requested already
	}
}

// EnforceRetention removes contents that are too old, and trims the start of a chain
// that is too old or too large. Each step is announced in the chain first.
func (l *Log) EnforceRetention(ctx context.Context) error {
	return l.runSteps(ctx, l.expireContents, l.evictContents, l.trimChain)
}

// runSteps repeats each step until it finds nothing more to do.
func (l *Log) runSteps(ctx context.Context, steps ...func(context.Context) (bool, error)) error {
	l.rewriteMu.Lock()
	defer l.rewriteMu.Unlock()
	for _, step := range steps {
		for more := true; more; {
			var err error
			if more, err = step(ctx); err != nil {
				return fmt.Errorf("enforce the retention of the audit log: %w", err)
			}
		}
	}
	return nil
}

// expireContents removes the contents of old batches, and reports whether there may
// be more of them.
func (l *Log) expireContents(ctx context.Context) (more bool, err error) {
	if l.cfg.Retention.Contents <= 0 {
		return false, nil
	}
	old, mark, err := l.findExpired(ctx, l.cfg.Now().Add(-l.cfg.Retention.Contents))
	if err != nil || len(old) == 0 {
		return false, err
	}
	if err := l.appendAdmin(ctx, &Record{Kind: KindAdmin, Event: EventExpire, UpTo: mark}); err != nil {
		return false, err
	}
	for _, seq := range old {
		m, err := l.cfg.Log.Get(ctx, seq)
		if errors.Is(err, store.ErrNotFound) {
			continue // an older copy of a batch earlier in the list
		}
		if err != nil {
			return false, err
		}
		b, err := decodeMessage(m)
		if err == nil {
			err = l.rewriteBatch(ctx, b, func(int) bool { return true })
		}
		if err != nil {
			return false, err
		}
	}
	return len(old) == maxBatchesPerPass, nil
}

// findExpired returns the messages of batches with contents that are older than
// cutoff, and the newest of these batches. Batches without contents are stored under
// another subject. The last batch of the chain may be included, because the
// announcement makes it the last no longer.
func (l *Log) findExpired(ctx context.Context, cutoff time.Time) (old []uint64, newest *ChainPosition, err error) {
	for _, subject := range []string{l.subjects.rewritten + "*", l.subjects.chain} {
		original := subject == l.subjects.chain
		err := l.cfg.Log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			b, ok := tryDecode(m)
			switch {
			case !ok:
				return nil
			case !b.newestTime().Before(cutoff):
				if original {
					return store.ErrStop // those behind it are newer
				}
				return nil
			case len(old) == maxBatchesPerPass:
				return store.ErrStop
			case !b.hasContent():
				return nil
			}
			old = append(old, m.Seq)
			if newest == nil || newest.Batch < b.number {
				newest = b.endPosition()
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return old, newest, nil
}

// trimChain removes the start of the chain if it is too old or too large, and
// reports whether there may be more to remove.
func (l *Log) trimChain(ctx context.Context) (more bool, err error) {
	c, err := l.planTrim(ctx)
	if err != nil || c.mark == nil {
		return false, err
	}
	rec := Record{Kind: KindAdmin, Event: EventCheckpoint, UpTo: c.mark}
	if c.early > 0 {
		rec.Note = fmt.Sprintf("%d batches before their retention, to make room", c.early)
	}
	if err := l.appendAdmin(ctx, &rec); err != nil {
		return false, err
	}
	if c.before > 0 {
		if err := l.cfg.Log.Trim(ctx, c.before); err != nil {
			return false, err
		}
	}
	// In ascending order, so that the rest of an interrupted trim still adjoins the
	// chain and the next trim finds it.
	for _, number := range c.rewritten {
		n := strconv.FormatUint(number, 10)
		if err := eraseMessages(ctx, l.cfg.Log, l.subjects.rewritten+n); err != nil {
			return false, err
		}
		if err := l.cfg.Log.Purge(ctx, l.subjects.withoutContents+n); err != nil {
			return false, err
		}
	}
	l.usage.trim(c.mark.Batch)
	if c.early > 0 {
		l.cfg.OnEvict(quota.Owner{}, c.early)
	}
	return c.batches == maxBatchesPerPass, nil
}

// eraseMessages overwrites the messages of a subject.
func eraseMessages(ctx context.Context, log *store.Log, subject string) error {
	return log.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
		return log.Delete(ctx, m.Seq)
	})
}

// trimPlan is the start of the chain that a trim removes, up to mark.
type trimPlan struct {
	mark      *ChainPosition
	batches   int
	early     int      // of these, before their retention
	before    uint64   // remove the messages before this one; 0 = none
	rewritten []uint64 // and these rewritten batches, which are stored behind it
}

func (l *Log) planTrim(ctx context.Context) (trimPlan, error) {
	var c trimPlan
	keep := l.cfg.Retention
	if keep.Chain <= 0 && keep.MaxBytes <= 0 {
		return c, nil
	}
	excess := int64(0)
	if keep.MaxBytes > 0 {
		info, err := l.cfg.Log.Info(ctx)
		if err != nil {
			return c, err
		}
		l.size.Store(int64(info.Bytes))
		if int64(info.Bytes) > l.trimLimit() { // free 10 % at once, not a batch at a time
			excess = int64(info.Bytes) - keep.MaxBytes/10*9
		} else if keep.Chain <= 0 {
			return c, nil
		}
	}
	end, now := l.end.Load().number, l.cfg.Now()
	err := l.walkBatches(ctx, store.ReadFrom{}, func(*batch) bool { return true }, func(seq uint64, b *batch) error {
		tooOld := keep.Chain > 0 && b.newestTime().Before(now.Add(-keep.Chain))
		if b.number >= end || c.batches == maxBatchesPerPass || excess <= 0 && !tooOld {
			return store.ErrStop
		}
		if !tooOld {
			c.early++
		}
		excess -= b.approximateSize()
		c.mark = b.endPosition()
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

// approximateSize estimates the size of the batch in the stream.
func (b *batch) approximateSize() int64 {
	size := 0
	for i := range b.entries {
		size += b.entries[i].encodedSize() + len(b.entries[i].content.parts)*maxPart
	}
	return int64(size)
}
