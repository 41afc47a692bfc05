package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

const (
	retentionInterval = time.Hour
	sizeInterval      = time.Minute
	// maxBatchesPerPass bounds the memory of one pass; the next pass continues.
	maxBatchesPerPass = 4096
)

// retainer removes old records and contents, and those beyond the limit, and counts the
// stored bytes. It is a part of the Log.
type retainer struct{ log *Log }

// StartRetention enforces the retention, and makes room in a full log, until Close. It must
// be called once at most. It first reads the whole log.
func (r *retainer) StartRetention() {
	r.log.retention.Go("enforce the retention", r.run)
	r.log.group.Go("enforce the retention", func(context.Context) error { return r.log.retention.Wait() })
}

// run enforces the retention until ctx ends. It logs errors and tries again after
// the next interval.
func (r *retainer) run(ctx context.Context) error {
	l := r.log
	maintain, checkSize := time.NewTicker(retentionInterval), time.NewTicker(sizeInterval)
	defer maintain.Stop()
	defer checkSize.Stop()
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
			case <-checkSize.C:
				err = l.makeRoom(ctx)
			case <-l.oversized:
				err = l.makeRoom(ctx)
			}
		}
	}
}

// watchSize wraps an append function. It requests a check of the size after the
// stream has grown by 1/50 of its limit or is full, because a burst must not wait
// for the next interval.
func (r *retainer) watchSize(through appendFunc) appendFunc {
	l := r.log
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

func (e *shareEnforcer) requestSizeCheck() {
	select {
	case e.log.oversized <- struct{}{}:
	default: // a check is requested already
	}
}

// makeRoom removes contents, and then records, if the log or the part of an owner is too
// large.
func (r *retainer) makeRoom(ctx context.Context) error {
	l := r.log
	if err := l.recountContents(ctx); err != nil {
		return err
	}
	return l.runSteps(ctx, l.evictContents, l.trimChain)
}

// EnforceRetention removes contents that are too old, and trims the start of a chain
// that is too old or too large. Each step is announced in the chain first.
func (r *retainer) EnforceRetention(ctx context.Context) error {
	l := r.log
	return l.runSteps(ctx, l.expireContents, l.evictContents, l.trimChain)
}

// runSteps repeats each step until it finds nothing more to do.
func (r *retainer) runSteps(ctx context.Context, steps ...func(context.Context) (bool, error)) error {
	l := r.log
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

// takeoverDelay is how long the chain of another replica may exceed the retention before this
// one removes what its writer has not, because that is gone.
const takeoverDelay = 2 * retentionInterval

// expireContents removes the contents of old batches, and reports whether there may
// be more of them.
func (r *retainer) expireContents(ctx context.Context) (more bool, err error) {
	l := r.log
	if l.cfg.Retention.Contents <= 0 {
		return false, nil
	}
	cutoff := l.cfg.Now().Add(-l.cfg.Retention.Contents)
	if more, err = l.expireIn(ctx, l.storedChain, cutoff); err != nil || l.others == nil {
		return more, err
	}
	cutoff = cutoff.Add(-takeoverDelay)
	for _, c := range l.others.all() {
		if !l.usage.hasContentBefore(c.writer, cutoff) {
			continue
		}
		again, err := l.expireIn(ctx, c, cutoff)
		if err != nil {
			return false, err
		}
		more = more || again
	}
	return more, nil
}

func (r *retainer) expireIn(ctx context.Context, c *storedChain, cutoff time.Time) (more bool, err error) {
	l := r.log
	old, mark, err := c.findExpired(ctx, cutoff, l.cfg.Now())
	if err != nil || len(old) == 0 {
		return false, err
	}
	if err := l.announce(ctx, &Record{Kind: KindAdmin, Event: EventExpire, Chain: c.writer, UpTo: mark}); err != nil {
		return false, err
	}
	for _, seq := range old {
		m, err := c.stream.Get(ctx, seq)
		if errors.Is(err, store.ErrNotFound) {
			continue // an older copy of a batch earlier in the list
		}
		if err != nil {
			return false, err
		}
		b, err := decodeMessage(m)
		if err == nil {
			err = l.rewriteBatch(ctx, c, b, func(int) bool { return true })
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
func (c *storedChain) findExpired(ctx context.Context, cutoff, now time.Time) (old []uint64, newest *ChainPosition, err error) {
	for _, subject := range []string{c.subjects.rewritten + "*", c.subjects.chain} {
		original := subject == c.subjects.chain
		err := c.stream.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			b, ok := tryDecode(m)
			switch {
			case !ok:
				return nil
			case !c.isOlder(b, cutoff, now):
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
