package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
)

const (
	retentionInterval = time.Hour
	sizeInterval      = time.Minute
	// maxBatchesPerPass bounds the memory of one pass; the next pass continues.
	maxBatchesPerPass = 4096
)

// retainer removes old records and contents, and those beyond the limit, from a log.
type retainer struct {
	log     *Log
	limiter *sizeLimiter
	group   *run.Group // ends before that of the log, which writes what the retainer announces
}

func newRetainer(ctx context.Context, l *Log) *retainer {
	return &retainer{log: l, limiter: l.limiter, group: run.New(ctx)}
}

// StartRetention enforces the retention, and makes room in a full log, until Close. It must
// be called once at most. It first reads the whole log.
func (l *Log) StartRetention() {
	l.retainer.group.Go("enforce the retention", l.retainer.run)
	l.group.Go("enforce the retention", func(context.Context) error { return l.retainer.group.Wait() })
}

// EnforceRetention removes contents that are too old, and trims the start of a chain that is
// too old or too large. Each step is announced in the chain first.
func (l *Log) EnforceRetention(ctx context.Context) error { return l.retainer.enforce(ctx) }

// run enforces the retention until ctx ends. It logs errors and tries again after
// the next interval.
func (r *retainer) run(ctx context.Context) error {
	logger := r.log.cfg.Logger
	maintain, checkSize := time.NewTicker(retentionInterval), time.NewTicker(sizeInterval)
	defer maintain.Stop()
	defer checkSize.Stop()
	if err := r.loadUsage(ctx); err != nil && ctx.Err() == nil {
		logger.ErrorContext(ctx, "the shares of tenants are not enforced", "error", err)
	}
	for {
		err := r.enforce(ctx)
		r.limiter.warnOfFullShares(ctx)
		for again := true; again; {
			if err != nil && ctx.Err() == nil {
				logger.ErrorContext(ctx, "enforce the retention of the audit log", "error", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-maintain.C:
				again = false
			case <-checkSize.C:
				err = r.makeRoom(ctx)
			case <-r.limiter.oversized:
				err = r.makeRoom(ctx)
			}
		}
	}
}

// makeRoom removes contents, and then records, if the log or the part of an owner is too
// large.
func (r *retainer) makeRoom(ctx context.Context) error {
	if err := r.recountContents(ctx); err != nil {
		return err
	}
	return r.runSteps(ctx, r.evictContents, r.trimChain)
}

func (r *retainer) enforce(ctx context.Context) error {
	return r.runSteps(ctx, r.expireContents, r.evictContents, r.trimChain)
}

// runSteps repeats each step until it finds nothing more to do.
func (r *retainer) runSteps(ctx context.Context, steps ...func(context.Context) (bool, error)) error {
	r.log.rewriter.mu.Lock()
	defer r.log.rewriter.mu.Unlock()
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
	if more, err = r.expireIn(ctx, l.storedChain, cutoff); err != nil || l.others == nil {
		return more, err
	}
	cutoff = cutoff.Add(-takeoverDelay)
	for _, c := range l.others.all() {
		if !l.usage.hasContentBefore(c.writer, cutoff) {
			continue
		}
		again, err := r.expireIn(ctx, c, cutoff)
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
			err = l.rewriter.rewrite(ctx, c, b, func(int) bool { return true })
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

// loadUsage adds the batches of earlier processes, and of other replicas, to the index.
func (r *retainer) loadUsage(ctx context.Context) error {
	l := r.log
	for _, c := range l.allChains() {
		if err := r.loadUsageOf(ctx, c); err != nil {
			return fmt.Errorf("index the audit log: %w", err)
		}
	}
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	l.usage.complete = true
	return nil
}

func (r *retainer) loadUsageOf(ctx context.Context, c *storedChain) error {
	l := r.log
	for _, subject := range []string{c.subjects.chain, c.subjects.rewritten + "*", c.subjects.withoutContents + "*"} {
		original := subject == c.subjects.chain
		err := c.stream.Read(ctx, store.ReadFrom{Subject: subject}, func(m store.Message) error {
			b, ok := tryDecode(m)
			switch {
			case !ok || !c.isPlausible(b):
				return nil
			case original && c == l.storedChain && b.first > l.openedAt, c != l.storedChain && m.Seq > l.openedBehind:
				return store.ErrStop // indexed when it was written, or followed
			}
			seq := b.seq
			if !original {
				seq = 0
			}
			l.usage.add(c.writer, b.number, seq, b.usage())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recountContents counts the contents of the segments again in which another replica may
// have removed some.
func (r *retainer) recountContents(ctx context.Context) error {
	l := r.log
	for k, seq := range l.usage.takeStale() {
		c, err := l.chainOf(ctx, k.writer)
		if err != nil {
			return err
		}
		contents := map[quota.Owner]int64{}
		first := k.firstBatch()
		err = c.walkBatches(ctx, store.ReadFrom{Seq: max(seq, 1)}, func(b *batch) bool { return b.number >= first }, func(_ uint64, b *batch) error {
			if b.number >= first+segmentBatches {
				return store.ErrStop
			}
			for _, u := range b.usage() {
				contents[u.owner] += u.bytes.contents
			}
			return nil
		})
		if err != nil {
			l.usage.markStale(k.writer, first)
			return fmt.Errorf("index the audit log: %w", err)
		}
		l.usage.setContents(k, contents)
	}
	return nil
}
